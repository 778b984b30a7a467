package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chaperone-agents/chaperone/internal/store"
)

// crashLocation tells a process that it is the writer that will be killed.
const crashLocation = "CHAPERONE_STORETEST_CRASH"

// Crash kills a writing process with SIGKILL, three times over the same store,
// and returns what is wrong with what it left: a transaction that was
// acknowledged and is gone, or one that is there in part. The writer is this
// test program again, running the calling test alone, which must therefore
// come to this call without other effects.
func Crash(t *testing.T, location string, open func(location string) (store.Store, error)) error {
	t.Helper()
	if where := os.Getenv(crashLocation); where != "" {
		fmt.Println(writeForever(where, open))
		os.Exit(1)
	}
	var there int64
	for range 3 {
		acknowledged, err := killedWriter(t, location)
		if err != nil {
			return err
		}
		now, err := count(location, open)
		if err != nil {
			return err
		}
		if now < there+acknowledged {
			return fmt.Errorf("%d transactions were acknowledged, but only %d are there", there+acknowledged, now)
		}
		there = now
	}
	return nil
}

// writeForever stores a session and an audit entry with its id in one
// transaction, and then prints how many it has stored.
func writeForever(location string, open func(string) (store.Store, error)) error {
	s, err := open(location)
	if err != nil {
		return err
	}
	for stored := 1; ; stored++ {
		record := newSession(mine, "")
		run := s.Tx
		if stored%2 == 0 { // the end of a process undoes no note either
			run = s.Note
		}
		err := run(context.Background(), mine, func(tx store.Tx) error {
			_, err := tx.Append(newEntry(mine, record.ID))
			return errors.Join(err, tx.InsertSession(record))
		})
		if err != nil {
			return err
		}
		fmt.Println(stored)
	}
}

// killedWriter returns the last number that the writer printed.
func killedWriter(t *testing.T, location string) (last int64, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.count=1")
	c.Env = append(os.Environ(), crashLocation+"="+location)
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := c.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(out)
	for seen := 0; lines.Scan(); seen++ {
		n, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			return 0, errors.Join(fmt.Errorf("the writer says %q", lines.Text()), c.Process.Kill(), c.Wait())
		}
		last = n
		if seen == 30 { // the rest of what it printed before it died is still read
			if err := c.Process.Kill(); err != nil {
				return 0, err
			}
		}
	}
	var exit *exec.ExitError
	if err := errors.Join(lines.Err(), c.Wait()); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		return 0, fmt.Errorf("the writer ended by itself: %w", err)
	}
	return last, nil
}

// count returns how many transactions are there, each of them whole.
func count(location string, open func(string) (store.Store, error)) (n int64, err error) {
	s, err := open(location)
	if err != nil {
		return 0, fmt.Errorf("open after the kill: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = s.View(context.Background(), mine, func(tx store.Tx) error {
		for {
			entries, err := tx.Audit(n, 200)
			if err != nil || len(entries) == 0 {
				return err
			}
			for _, e := range entries {
				if n++; e.Number != n {
					return fmt.Errorf("audit entry %d stands where %d belongs", e.Number, n)
				}
				if _, err := tx.Session(e.Subject); err != nil {
					return fmt.Errorf("transaction %d is there in part: %w", n, err)
				}
			}
		}
	})
	return n, err
}
