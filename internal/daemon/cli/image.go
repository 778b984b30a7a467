package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/chaperone-agents/chaperone/client"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/base/privatefs"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
)

type imageCommand struct {
	Attach imageAttach `cmd:"" help:"Give an agent session an image that its agent may upload, each time with your approval."`
	List   imageList   `cmd:"" help:"List the images of a session."`
	Remove imageRemove `cmd:"" help:"Take an image away from a session."`
}

type imageAttach struct {
	Session string `arg:"" help:"Session id."`
	File    string `arg:"" help:"A PNG, JPEG or WebP of at most 5 MiB." type:"existingfile"`
	JSON    bool   `help:"Print JSON."`
}

func (c *imageAttach) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	i, err := conn.attach(e.ctx, c.Session, c.File)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(i)
	}
	fmt.Fprintf(e.stdout, "Attached. Tell the agent this image_id:\n%s\n", i.Id)
	return nil
}

// attach sends a file, whose name stays here.
func (c *connection) attach(ctx context.Context, session, file string) (*client.Image, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > artifact.MaxSize {
		return nil, fault.New(fault.MalformedRequest, "An image is a file of at most 5 MiB. Nothing was attached.")
	}
	r, err := c.api.AttachImageWithBodyWithResponse(ctx, session, "application/octet-stream", f)
	if err := check(r, err); err != nil {
		return nil, err
	}
	return r.JSON201, nil
}

type imageList struct {
	Session string `arg:"" help:"Session id."`
	JSON    bool   `help:"Print JSON."`
}

func (c *imageList) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.ListImagesWithResponse(e.ctx, c.Session)
	if err := check(r, err); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(r.JSON200)
	}
	return e.table("IMAGE\tTYPE\tSIZE\tPIXELS\tUNTIL", func(row func(...string)) {
		for _, i := range r.JSON200.Images {
			row(i.Id, string(i.Type), fmt.Sprintf("%d kB", (i.Size+999)/1000), fmt.Sprintf("%d x %d", i.Width, i.Height), when(&i.ExpiresAt))
		}
	})
}

type imageRemove struct {
	Session string `arg:"" help:"Session id."`
	Image   string `arg:"" help:"Image id."`
}

func (c *imageRemove) Run(e *environment) error {
	conn, err := e.connect()
	if err != nil {
		return err
	}
	r, err := conn.api.RemoveImageWithResponse(e.ctx, c.Session, c.Image)
	if err := check(r, err); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "Removed.")
	return nil
}

// picture writes the picture of an approval to a new file, and says where in
// it the element is.
func (e *environment) picture(conn *connection, approval, file string, out io.Writer) error {
	r, err := conn.api.GetPictureWithResponse(e.ctx, approval)
	if err := check(r, err); err != nil {
		return err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if err := privatefs.CreateFile(path, r.JSON200.Jpeg); errors.Is(err, os.ErrExist) {
		return fault.New(fault.Conflict, "There is a file with that name already. Nothing was written; choose another name.")
	} else if err != nil {
		return err
	}
	p, box := r.JSON200, r.JSON200.Box
	fmt.Fprintf(out, "  picture  %s; of its %d x %d, the element is at %d, %d and has %d x %d\n", file, p.Width, p.Height, box.X, box.Y, box.Width, box.Height)
	return nil
}
