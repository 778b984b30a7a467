package broker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chaperone-agents/chaperone/internal/base/caller"
	"github.com/chaperone-agents/chaperone/internal/base/fault"
	"github.com/chaperone-agents/chaperone/internal/rules/action"
	"github.com/chaperone-agents/chaperone/internal/rules/artifact"
	"github.com/chaperone-agents/chaperone/internal/rules/contract"
	"github.com/chaperone-agents/chaperone/internal/rules/grant"
	"github.com/chaperone-agents/chaperone/internal/rules/lease"
	"github.com/chaperone-agents/chaperone/internal/rules/observe"
)

// Images are what sessions can upload; app/artifacts has them.
type Images interface {
	// Usable lists those of the agent's session, newest first.
	Usable(ctx context.Context, agent caller.Caller) ([]artifact.Image, error)
	// Resolve reads one with its bytes and checks it anew; ok is false for
	// whatever cannot be used, and nothing says why (UPL-06).
	Resolve(ctx context.Context, agent caller.Caller, id string) (p artifact.Payload, ok bool, err error)
}

// uploadTime is toolTime for an upload (section 2.2).
const uploadTime = 45 * time.Second

func timeOf(tool action.Tool) time.Duration {
	if tool == action.Upload {
		return uploadTime
	}
	return toolTime
}

// Tools lists what a session with the set can call here (UPL-10).
func (b *Broker) Tools(set contract.Set) []contract.Tool {
	tools := set.Tools()
	if b.Images != nil {
		return tools
	}
	var out []contract.Tool
	for _, t := range tools {
		if t.Name != contract.Upload {
			out = append(out, t)
		}
	}
	return out
}

// Attached is the identifiers of at most ten images that the agent's session
// can upload, newest first.
func (b *Broker) Attached(ctx context.Context, c caller.Caller) ([]string, error) {
	if b.Images == nil {
		return nil, nil
	}
	usable, err := b.Images.Usable(ctx, c)
	return identifiers(usable, ""), public(err)
}

// identifiers are those of the first images but the one.
func identifiers(images []artifact.Image, but string) []string {
	var ids []string
	for _, i := range images {
		if i.ID != but && len(ids) < maxNamed {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// image is the record of what an upload names. The owner is not asked about
// what could not be sent, so its bytes are looked at already.
func (b *Broker) image(ctx context.Context, c caller.Caller, id string) (artifact.Image, error) {
	if b.Images == nil {
		return artifact.Image{}, fault.New(fault.ArgumentsInvalid, "There is no such tool. Nothing was done.")
	}
	p, ok, err := b.Images.Resolve(ctx, c, id)
	p.Data.Wipe()
	if err != nil {
		return artifact.Image{}, public(err)
	}
	usable, err := b.Images.Usable(ctx, c)
	if err != nil {
		return artifact.Image{}, public(err)
	}
	if at := slices.IndexFunc(usable, func(i artifact.Image) bool { return i.ID == id }); ok && at >= 0 {
		return usable[at], nil
	}
	return artifact.Image{}, noImage(usable, id)
}

// noImage is the one answer to every identifier that leads to no image.
func noImage(usable []artifact.Image, id string) error {
	ids := identifiers(usable, id)
	if len(ids) == 0 {
		return fault.New(fault.ArgumentsInvalid, "There is no such image in this session, and no other. Nothing was sent; ask the owner to attach one.")
	}
	return fault.Newf(fault.ArgumentsInvalid, "There is no such image in this session. Nothing was sent. The owner attached, newest first: %s.", strings.Join(ids, ", "))
}

// maxNamed is how many images an answer names.
const maxNamed = 10

// payload resolves the image of an upload, once it is approved and before its
// approval is spent.
func (b *Broker) payload(ctx context.Context, c caller.Caller, r action.Request) (artifact.Payload, error) {
	if r.Tool != action.Upload {
		return artifact.Payload{}, nil
	}
	p, ok, err := b.Images.Resolve(ctx, c, r.Image)
	if err != nil || ok {
		return p, public(err)
	}
	usable, err := b.Images.Usable(ctx, c)
	if err != nil {
		return artifact.Payload{}, public(err)
	}
	return artifact.Payload{}, noImage(usable, r.Image)
}

func (b *Broker) send(ctx context.Context, held lease.Held, permit grant.Permit, r action.Request, image artifact.Payload) (observe.Document, error) {
	if r.Tool == action.Upload {
		return b.Service.Upload(ctx, held, permit, r, image)
	}
	return b.Service.Do(ctx, held, permit, r)
}
