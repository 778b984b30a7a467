package broker

import (
	"fmt"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/browser"
)

// Pictures counts what is kept.
func (b *Broker) Pictures() int {
	b.pictures.mu.Lock()
	defer b.pictures.mu.Unlock()
	return len(b.pictures.kept)
}

// FillAlbum keeps n pictures of a size, and says what is left of them.
func FillAlbum(n, bytes int) (count, size int, newest bool) {
	var a album
	for i := range n {
		a.keep(pictured{approval: fmt.Sprint(i), picture: browser.Picture{JPEG: make([]byte, bytes)}})
	}
	for _, p := range a.kept {
		size += len(p.picture.JPEG)
	}
	_, newest = a.find(caller.Scope{}, fmt.Sprint(n-1))
	return len(a.kept), size, newest
}
