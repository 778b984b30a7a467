package roundcube

import (
	"fmt"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"sync"
)

// Letter is a mail that reached the mail server.
type Letter struct {
	From string
	To   []string
	Text string // headers and body, as they were sent
}

// mailServer takes every mail and keeps it.
type mailServer struct {
	l    net.Listener
	wait sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil when it has ended
	got   []Letter
}

func listen() (*mailServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("roundcube: %w", err)
	}
	s := &mailServer{l: l, conns: map[net.Conn]bool{}}
	s.wait.Go(s.serve)
	return s, nil
}

func (s *mailServer) addr() string { return s.l.Addr().String() }

func (s *mailServer) close() error {
	err := s.l.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.wait.Wait()
	return err
}

func (s *mailServer) letters() []Letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *mailServer) serve() {
	for {
		c, err := s.l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		open := s.conns != nil
		if open {
			s.conns[c] = true
		}
		s.mu.Unlock()
		if !open {
			c.Close()
			return
		}
		s.wait.Go(func() {
			s.talk(textproto.NewConn(c))
			c.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

// talk is one conversation, as RFC 5321 has it at its least.
func (s *mailServer) talk(c *textproto.Conn) {
	say := func(line string) bool { return c.PrintfLine("%s", line) == nil }
	say("220 practice mail server")
	var letter Letter
	for {
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "MAIL":
			letter = Letter{From: mailbox(rest)}
			say("250 ok")
		case "RCPT":
			letter.To = append(letter.To, mailbox(rest))
			say("250 ok")
		case "DATA":
			say("354 go on")
			text, err := c.ReadDotBytes()
			if err != nil {
				return // a mail counts when it has come whole
			}
			letter.Text = string(text)
			s.mu.Lock()
			s.got = append(s.got, letter)
			s.mu.Unlock()
			say("250 ok")
		case "QUIT":
			say("221 bye")
			return
		case "HELO", "EHLO", "RSET", "NOOP":
			say("250 practice")
		default:
			say("502 not here")
		}
	}
}

// mailbox is the address in FROM:<a@b> or TO:<a@b>.
func mailbox(s string) string {
	_, s, _ = strings.Cut(s, "<")
	s, _, _ = strings.Cut(s, ">")
	return s
}
