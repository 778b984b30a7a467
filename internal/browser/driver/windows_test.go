package driver_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"

	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/browser/driver"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// forbidden lists the requests for what must never be asked for.
func (b *bench) forbidden() []string {
	var out []string
	for _, h := range []string{host, "login.example", "other.example"} {
		for _, r := range b.Requests(h) {
			if strings.HasPrefix(r.Path, "/bad") {
				out = append(out, r.Method+" "+r.Host+r.Path)
			}
		}
	}
	return out
}

const aliveButton = say + `<button onclick="say('alive')">Alive</button>`

// alive fails when the page does not work any more.
func (b *bench) alive(t *testing.T, d observe.Document) observe.Document {
	t.Helper()
	before := strings.Count(b.effects(), "alive")
	d, err := b.act(t, d, action.Click, "Alive")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the page still works", func() bool { return strings.Count(b.effects(), "alive") == before+1 })
	return d
}

// told are the notices as "kind text".
func told(d observe.Document) string {
	var out []string
	for _, n := range d.Notices {
		out = append(out, strings.TrimSpace(n.Kind+" "+n.Text))
	}
	return strings.Join(out, ", ")
}

// reported waits until the page's observation tells of what was wanted, and
// perhaps of more: some reports come from the browser, some from the page.
func (b *bench) reported(t *testing.T, d observe.Document, want string) observe.Document {
	t.Helper()
	got := told(d)
	eventually(t, want, func() bool {
		if strings.Contains(got, want) {
			return true
		}
		var err error
		if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil {
			t.Fatal(err)
		}
		got += " " + told(d)
		return false
	})
	return d
}

// POP-01, POP-02, POP-03: however a page asks for a window, nothing is sent,
// the address is told, and the page works afterwards.
func TestNewWindows(t *testing.T) {
	b := newBench(t, nil)
	b.Page("login.example/frame", `<a href=/bad/frame-link target=_blank>FrameLink</a><button onclick="window.open('/bad/frame-script')">FrameScript</button>`)
	d := b.open(t, "/windows", aliveButton+`<script>window.open('/bad/load')</script><iframe src=https://login.example/frame></iframe>
		<button onclick="say('null='+(window.open('/bad/script')===null))">Script</button>
		<a href=/bad/blank target=_blank>Blank</a><a href=/bad/noopener target=_blank rel=noopener>Noopener</a><a href=/bad/named target=win>Named</a>
		<form action=/bad/get target=_blank><input type=hidden name=q value=1><button>Get</button></form><form method=post action=/bad/post target=_blank><button>Post</button></form>
		<a href="javascript:void window.open('/bad/js')">Scheme</a><button onclick="window.open('javascript:fetch(\'/bad/inner\')')">OpenScheme</button>
		<button onclick="confirm('Sure?');window.open('/bad/confirmed')">Confirmed</button>
		<button onclick="const w=window.open('');if(w)new w.Image().src='/bad/written'">Written</button>
		<button onclick="for(let i=0;i<1000;i++)window.open('/bad/many')">Many</button>
		<button onclick="window.open('https://other.example/bad/off')">Off</button>`)
	if got := told(d); got != "popup https://wiki.example/bad/load" {
		t.Errorf("at load: %s", got)
	}
	const at = "popup https://wiki.example/bad/"
	for _, c := range []struct{ name, told string }{
		{"Script", at + "script"}, {"Blank", at + "blank"}, {"Noopener", at + "noopener"}, {"Named", at + "named"}, {"Get", at + "get?q=1"}, {"Post", at + "post"},
		{"Scheme", at + "js"}, {"OpenScheme", "popup javascript:fetch('/bad/inner')"}, {"Confirmed", "confirm Sure?, " + at + "confirmed"}, {"Written", "popup about:blank"}, {"Many", at + "many"},
		{"Off", "popup https://other.example/bad/off"}, {"FrameLink", "popup https://login.example/bad/frame-link"}, {"FrameScript", "popup https://login.example/bad/frame-script"},
	} {
		var err error
		if d, err = b.act(t, d, action.Click, c.name); err != nil {
			t.Fatal(c.name, err)
		}
		d = b.reported(t, d, c.told)
	}
	b.alive(t, d)
	if !strings.Contains(b.effects(), "null%3Dtrue") {
		t.Error("the page was given a window")
	}
	t.Run("a trusted click with a modifier", func(t *testing.T) {
		for i, c := range []struct {
			keys   int64
			button input.MouseButton
		}{{2, input.MouseButtonLeft}, {8, input.MouseButtonLeft}, {10, input.MouseButtonLeft}, {0, input.MouseButtonMiddle}} {
			d := b.open(t, fmt.Sprint("/modified", i), aliveButton+fmt.Sprintf(`<a href=/bad/modified%d style="position:fixed;left:0;top:200px;width:200px;height:100px">M</a>`, i))
			driver.ModifiedClick(t.Context(), t, b.page, 50, 250, c.keys, c.button)
			b.alive(t, b.reported(t, d, fmt.Sprint("popup https://wiki.example/bad/modified", i)))
		}
	})
	if got := b.forbidden(); len(got) != 0 {
		t.Errorf("sent: %q", got)
	}
	if got := b.Requests("other.example"); len(got) != 0 {
		t.Errorf("sent: %+v", got)
	}
}

// EPH-01: a download ends before anything of it is kept, and is told.
func TestDownloads(t *testing.T) {
	var home string
	b := newBench(t, func(c *driver.Config) { home = c.Home })
	for _, p := range []string{"/saved.bin", "/sent.bin"} {
		b.Handle(host+p, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Disposition", "attachment; filename=sent.bin")
			_, _ = w.Write([]byte("the content of the file"))
		})
	}
	d := b.open(t, "/downloads", aliveButton+`<a href=/saved.bin download=saved.bin>Attribute</a><a href=/sent.bin>Header</a><a href=https://other.example/bad/file download>Elsewhere</a>
		<iframe id=frame></iframe><button onclick="frame.src='/sent.bin'">Frame</button><a id=made download=made.txt>Blob</a><a href="data:text/plain,x" download=data.txt>Data</a>
		<script>made.href=URL.createObjectURL(new Blob(['the content of the file']))</script>`)
	for _, c := range []struct {
		name, told string
		code       fault.Code // "" for an act that succeeds
	}{
		{"Attribute", "download https://wiki.example/saved.bin", fault.OutcomeUnknown}, {"Header", "download https://wiki.example/sent.bin", fault.OutcomeUnknown},
		{"Elsewhere", "", fault.URLDisallowed}, {"Frame", "download sent.bin", ""}, {"Blob", "download made.txt", ""}, {"Data", "download data.txt", ""},
	} {
		after, err := b.act(t, d, action.Click, c.name)
		if c.code != "" {
			refused(t, err, c.code)
			after, err = b.page.Observe(t.Context(), observe.Query{})
		}
		if err != nil {
			t.Fatal(c.name, err)
		}
		d = b.reported(t, after, c.told)
	}
	b.alive(t, d)
	if got := b.forbidden(); len(got) != 0 {
		t.Errorf("sent: %q", got)
	}
	err := filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // the browser removes files as we look
		}
		switch ext := filepath.Ext(path); {
		case e.IsDir():
		case ext == ".bin" && (strings.HasPrefix(e.Name(), "saved") || strings.HasPrefix(e.Name(), "sent")), ext == ".crdownload",
			ext == ".txt" && (strings.HasPrefix(e.Name(), "made") || strings.HasPrefix(e.Name(), "data")):
			t.Errorf("kept: %s", e.Name())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// NAVC-01, SER-01: dialogs of every kind are dismissed and told, never
// accepted; a page that opens nothing but dialogs does not hold up anybody.
func TestDialogs(t *testing.T) {
	b := newBench(t, nil)
	b.Page(host+"/left", "left")
	b.Page("login.example/alerts", `<script>alert('across');fetch('/effect?across')</script>`)
	b.Handle("login.example/effect", func(http.ResponseWriter, *http.Request) {})
	d := b.open(t, "/dialogs", aliveButton+`<script>alert('early')</script><iframe srcdoc="<script>alert('inner')</script>"></iframe><iframe src=https://login.example/alerts></iframe>
		<button onclick="say('confirm='+confirm('Delete?'))">Confirm</button><button onclick="say('prompt='+prompt('Name?','me'))">Prompt</button>
		<button onclick="alert('x'.repeat(1000))">Long</button><button onclick="for(let i=0;i<40;i++)alert('n'+i);say('through')">Forty</button><button onclick="for(;;)alert('again')">Endless</button>
		<button onclick="window.addEventListener('beforeunload',(e)=>e.preventDefault())">Stay</button><button onclick="location='/left'">Leave</button>`)
	got := strings.Split(told(d), ", ") // the frames' in any order
	slices.Sort(got)
	if !slices.Equal(got, []string{"alert across", "alert early", "alert inner"}) {
		t.Errorf("at load: %q", got)
	}
	eventually(t, "the frame's script went on", func() bool { return b.Count("login.example", "/effect") == 1 })
	for _, c := range []struct{ name, told string }{
		{"Confirm", "confirm Delete?"}, {"Prompt", "prompt Name?"}, {"Long", "alert " + strings.Repeat("x", 256)},
	} {
		var err error
		if d, err = b.act(t, d, action.Click, c.name); err != nil {
			t.Fatal(c.name, err)
		}
		if got := told(d); got != c.told {
			t.Errorf("%s: %q, want %q", c.name, got, c.told)
		}
	}
	eventually(t, "both dismissed", func() bool {
		return strings.Contains(b.effects(), "confirm%3Dfalse") && strings.Contains(b.effects(), "prompt%3Dnull")
	})
	_, err := b.act(t, d, action.Click, "Forty") // its outcome is unknown when they take longer than an input may
	if err != nil {
		refused(t, err, fault.OutcomeUnknown)
	}
	eventually(t, "forty dialogs", func() bool { return strings.Contains(b.effects(), "through") })
	if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil || len(d.Notices) > observe.MaxNotices {
		t.Fatal(len(d.Notices), err)
	}
	if d, err = b.act(t, b.alive(t, d), action.Click, "Stay"); err != nil {
		t.Fatal(err)
	}
	_, err = b.act(t, d, action.Click, "Leave")
	refused(t, err, fault.NavigationCancelled)
	if d, err = b.page.Observe(t.Context(), observe.Query{}); err != nil || told(d) != "beforeunload" {
		t.Errorf("%q %v", told(d), err)
	}
	d = b.alive(t, d)
	if b.Count(host, "/left") != 0 {
		t.Error("a page that asked to be kept was left")
	}
	_, err = b.act(t, d, action.Click, "Endless")
	refused(t, err, fault.OutcomeUnknown)
	select {
	case <-b.page.Done():
	case <-time.After(time.Minute):
		t.Error("a page that opens dialogs without end holds its browser")
	}
}

// DENY-01: what would open a window of the browser's own opens none, on a
// display where it could, and the page goes on.
func TestBrowserWindows(t *testing.T) {
	b := newBench(t, func(c *driver.Config) { c.Headed = true })
	d := b.open(t, "/pickers", aliveButton+`<script>const after = (p, name) => p.then(() => say(name + '-yes'), () => say(name + '-no'));</script>
		<button onclick="print();say('printed')">Print</button><input type=file id=f hidden><button onclick="f.click()">Chooser</button>
		<button onclick="after(showOpenFilePicker(),'open')">Open</button><button onclick="after(showSaveFilePicker(),'save')">Save</button><button onclick="after(showDirectoryPicker(),'directory')">Directory</button>
		<button onclick="after(document.documentElement.requestFullscreen(),'full')">Fullscreen</button><button onclick="window.open('/bad/headed')">Window</button>
		<script>print()</script>`)
	for _, name := range []string{"Print", "Chooser", "Open", "Save", "Directory", "Fullscreen", "Window"} {
		var err error
		if d, err = b.act(t, d, action.Click, name); err != nil {
			t.Fatal(name, err)
		}
		d = b.alive(t, d)
	}
	eventually(t, "all ended", func() bool {
		for _, word := range []string{"printed", "open-no", "save-no", "directory-no", "full-"} {
			if !strings.Contains(b.effects(), word) {
				return false
			}
		}
		return true
	})
	if got := b.forbidden(); len(got) != 0 {
		t.Errorf("sent: %q", got)
	}
}
