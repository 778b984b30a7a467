package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed report.html
var reportPage string

//go:embed slide.html
var slidePage string

var (
	reportTemplate = template.Must(template.New("report").Parse(reportPage))
	slideTemplate  = template.Must(template.New("slide").Parse(slidePage))
)

// report collects what index.html shows.
type report struct {
	dir      string
	Began    time.Time
	Chapters []*chapter
}

type chapter struct {
	Name  string
	Steps []*step
}

type step struct {
	Title    string
	Took     string
	Failure  string
	Done     bool
	Facts    []fact
	Pictures []picture
}

type fact struct{ Name, Value string }

type picture struct {
	Caption string
	file    string
	jpeg    []byte
}

// Data is the picture as an address that needs no other file.
func (p picture) Data() template.URL {
	return template.URL("data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(p.jpeg))
}

func newReport(dir string) *report { return &report{dir: dir, Began: time.Now()} }

func (r *report) chapter(name string) { r.Chapters = append(r.Chapters, &chapter{Name: name}) }

func (r *report) step(title string) {
	c := r.Chapters[len(r.Chapters)-1]
	c.Steps = append(c.Steps, &step{Title: title})
}

func (r *report) current() *step {
	c := r.Chapters[len(r.Chapters)-1]
	return c.Steps[len(c.Steps)-1]
}

func (r *report) finish(took time.Duration, err error) {
	s := r.current()
	s.Took, s.Done = seconds(took), err == nil
	if err != nil {
		s.Failure = err.Error()
	}
}

func seconds(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func (r *report) figure(name string, took time.Duration) { r.fact(name, seconds(took)) }

func (r *report) fact(name, value string) {
	s := r.current()
	s.Facts = append(s.Facts, fact{name, value})
}

func (r *report) picture(caption string, jpeg []byte) {
	s := r.current()
	c := r.Chapters[len(r.Chapters)-1]
	name := strings.ToLower(strings.ReplaceAll(c.Name, " ", "-"))
	s.Pictures = append(s.Pictures, picture{caption, fmt.Sprintf("%s-%02d-%d.jpg", name, len(c.Steps), len(s.Pictures)+1), jpeg})
}

// Passed counts the steps that succeeded.
func (c *chapter) Passed() int {
	n := 0
	for _, s := range c.Steps {
		if s.Done {
			n++
		}
	}
	return n
}

// write leaves index.html, which needs no other file, and the pictures once
// more as files. It returns the path of the page.
func (r *report) write() (string, error) {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return "", err
	}
	for _, c := range r.Chapters {
		for _, s := range c.Steps {
			for _, p := range s.Pictures {
				if err := os.WriteFile(filepath.Join(r.dir, p.file), p.jpeg, 0o644); err != nil {
					return "", err
				}
			}
		}
	}
	var page bytes.Buffer
	if err := reportTemplate.Execute(&page, r); err != nil {
		return "", err
	}
	path := filepath.Join(r.dir, "index.html")
	return path, os.WriteFile(path, page.Bytes(), 0o644)
}
