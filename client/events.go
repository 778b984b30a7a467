package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Event says that the audit trail grew.
type Event struct {
	Number  int64  `json:"number"`
	Kind    string `json:"kind"`
	Subject string `json:"subject"` // id of what it is about
}

// maxLine bounds one line of the stream, in bytes.
const maxLine = 16 << 10

// Events calls each for every event behind the number after, or for those from
// now on when after is below zero. It returns nil when ctx ends, the error of
// each, or the reason why the stream ended.
func (c *ClientWithResponses) Events(ctx context.Context, after int64, each func(Event) error) error {
	var params StreamEventsParams
	if after >= 0 {
		seen := strconv.FormatInt(after, 10)
		params.LastEventID = &seen
	}
	answer, err := c.ClientInterface.StreamEvents(ctx, &params)
	if err != nil {
		return ended(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var body Error
		if json.NewDecoder(io.LimitReader(answer.Body, maxLine)).Decode(&body) != nil {
			return Check(answer.StatusCode, nil)
		}
		return Check(answer.StatusCode, &body)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("client: an event that is not JSON: %w", err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return ended(ctx, err)
	}
	return ended(ctx, io.ErrUnexpectedEOF)
}

// ended hides the failure of a stream that its reader closed.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
