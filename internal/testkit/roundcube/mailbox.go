package roundcube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Deliver puts a mail into the inbox, as a mail server does.
func (m *Mail) Deliver(ctx context.Context, from, subject, text string) error {
	name := random(8)
	mail := "From: " + from + "\r\nTo: " + Address + "\r\nSubject: " + subject + "\r\nMessage-ID: <" + name + "@practice.example>\r\n" +
		"Date: Mon, 02 Nov 2026 08:00:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + text + "\r\n"
	// It is whole before it has its name in the inbox.
	if err := m.user.Write(ctx, m.at("mail/tmp/"+name), mail); err != nil {
		return err
	}
	return os.Rename(m.at("mail/tmp/"+name), m.at("mail/new/"+name))
}

// Folder lists the mails in a folder, as files of the Maildir; "" is the inbox.
func (m *Mail) Folder(name string) ([]string, error) {
	if name != "" {
		name = "." + name
	}
	var mails []string
	for _, part := range []string{"new", "cur"} {
		files, err := filepath.Glob(filepath.Join(m.at("mail"), name, part, "*"))
		if err != nil {
			return nil, fmt.Errorf("roundcube: %w", err)
		}
		for _, f := range files {
			// Between the list and the reading a mail may get another name.
			if b, err := os.ReadFile(f); err == nil {
				mails = append(mails, string(b))
			}
		}
	}
	return mails, nil
}

// Attached lists what was uploaded for mails that are being written.
func (m *Mail) Attached() ([][]byte, error) {
	files, err := filepath.Glob(m.at("temp/RCMTEMP*"))
	if err != nil {
		return nil, fmt.Errorf("roundcube: %w", err)
	}
	var all [][]byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && !strings.HasSuffix(f, ".thumb") {
			all = append(all, b)
		}
	}
	return all, nil
}

// Sent lists the mails that Roundcube gave to the mail server.
func (m *Mail) Sent() []Letter { return m.smtp.letters() }
