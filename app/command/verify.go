package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"ashlar/app"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/history/audit"
	"ashlar/kv"
)

// verifyCache is small: nearly all data is read once, sequentially.
const verifyCache = 64 << 20

// Head as Verify.To means the last block.
const Head = audit.Head

// Verify is ashlar verify.
type Verify struct {
	Data    string
	Config  string // a configuration file that says where the stores are, instead of Data
	Network string
	family.Verification
	JSON bool
}

// Run verifies a network, shows the progress on bar, and writes the result to out. It
// changes nothing. It returns an error if anything is wrong.
func (v Verify) Run(ctx context.Context, out io.Writer, bar *os.File) error {
	started := time.Now()
	found, err := v.check(ctx, bar)
	if err != nil {
		return fmt.Errorf("network %s: %w", v.Network, err)
	}
	if err := v.write(out, found, time.Since(started)); err != nil {
		return err
	}
	if !found.Outcome().Sound {
		return fmt.Errorf("network %s is not sound", v.Network)
	}
	return nil
}

func (v Verify) check(ctx context.Context, bar *os.File) (found family.Verdict, err error) {
	data, _, err := openStoresOf(ctx, v.Network, v.Data, v.Config, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	dir, inDir := data.(store.Dir)
	opened, err := data.OpenNetwork(v.Network, kv.Options{ReadOnly: true, CacheBytes: verifyCache})
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, family.ErrNoBlocks
	case err != nil && !(inDir && kv.IsDamage(err)):
		return nil, err
	case err != nil:
		return unopened{audit.Report{Finding: audit.UnreadableStore(dir.Network(v.Network), err)}}, nil
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	progress := new(audit.Progress)
	shown := newProgress(bar, "verifying", func() (status, bool) { return verifyStatus(progress) })
	defer shown.end()
	f, _ := app.FamilyOf(ctx, opened) // the family finds the error too
	found, err = f.Verify(ctx, opened, v.Verification, progress)
	if errors.Is(err, kv.ErrNotFound) {
		err = family.ErrNoBlocks
	}
	return found, err
}

// unopened is the verdict for a store that does not open.
type unopened struct{ audit.Report }

// Outcome implements [family.Verdict].
func (u unopened) Outcome() *audit.Report { return &u.Report }

// Summary implements [family.Verdict].
func (unopened) Summary() string { return "" }

// Unchecked implements [family.Verdict].
func (unopened) Unchecked() []string { return nil }

// write writes the verdict as text or as JSON.
func (v Verify) write(out io.Writer, found family.Verdict, took time.Duration) error {
	if v.JSON {
		return v.writeJSON(out, found, took.Seconds())
	}
	outcome := found.Outcome()
	if !outcome.Sound {
		dir := store.Dir(v.Data).Network(v.Network)
		if v.Config != "" {
			dir = "it"
		}
		_, err := fmt.Fprintf(out, "%s is not sound:\n\n%s\nRestore %s from a copy, or remove it and import the network again.\n", v.Network, outcome.Finding.Text(), dir)
		return err
	}
	text := fmt.Appendf(nil, "%s: %s, %s, %s, %s checked in %s: sound\n", v.Network,
		family.Counted(outcome.Blocks, "block"), family.Counted(outcome.Transactions, "transaction"), found.Summary(), family.Counted(outcome.Rows, "row"), took.Round(100*time.Millisecond))
	for _, line := range found.Unchecked() {
		text = append(append(text, line...), '\n')
	}
	_, err := out.Write(text)
	return err
}

// writeJSON writes the verdict's object, with additional members: the network first, the
// time last.
func (v Verify) writeJSON(out io.Writer, found family.Verdict, seconds float64) error {
	members, err := json.Marshal(found)
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, `{"network":%q,%s,"seconds":%g}`, v.Network, members[1:len(members)-1], seconds)
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, indented.String())
	return err
}

// verifyStatus returns the progress of a verification.
func verifyStatus(p *audit.Progress) (status, bool) {
	stage, since, share, rows := p.Now()
	return status{
		part: stage, kind: "stage", since: since, share: share,
		brief:  family.Counted(rows, "row"),
		fields: []any{"rows", rows},
	}, stage != ""
}
