package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	rolluparchive "ashlar/archive/rollup"
	"ashlar/archive/rows"
	"ashlar/gateway"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/verify"
)

// verifyCache is small: nearly all is read once, from beginning to end.
const verifyCache = 64 << 20

// Head, as the end of what is verified, is the last block.
const Head = verify.Head

// ErrRange says that a network does not have the blocks that are to be verified.
var ErrRange = verify.ErrRange

// Verify is what `ashlar verify` is told.
type Verify struct {
	Data    string
	Network string
	verify.Options
	JSON bool
}

// verified is what it answers.
type verified struct {
	Network string `json:"network"`
	*verify.Report
	Seconds float64 `json:"seconds"`
}

// Run checks a network against itself, shows on bar how far it is, and writes to
// out what it has found. It changes nothing. The error says whether anything is
// wrong.
func (v Verify) Run(ctx context.Context, out io.Writer, bar *os.File) error {
	started := time.Now()
	report, err := v.check(ctx, bar)
	if err != nil {
		return fmt.Errorf("network %s: %w", v.Network, err)
	}
	answer := verified{v.Network, report, time.Since(started).Seconds()}
	if err := answer.write(out, v.JSON, dataDir(v.Data).network(v.Network)); err != nil {
		return err
	}
	if !report.Sound {
		return fmt.Errorf("network %s is not sound", v.Network)
	}
	return nil
}

func (v Verify) check(ctx context.Context, bar *os.File) (report *verify.Report, err error) {
	data := dataDir(v.Data)
	if err := gateway.CheckNetworkName(v.Network); err != nil {
		return nil, err
	}
	if err := data.check(); err != nil {
		return nil, err
	}
	if data.isEmpty(v.Network) {
		return nil, fmt.Errorf("%s does not hold it; import it first", v.Data)
	}
	store, err := pebble.Open(pebble.Options{Path: data.network(v.Network), ReadOnly: true, CacheBytes: verifyCache, Logger: slog.Default()})
	switch {
	case errors.Is(err, pebble.ErrLocked) || errors.Is(err, pebble.ErrForeign):
		return nil, err
	case err != nil:
		return &verify.Report{Finding: verify.Unopened(data.network(v.Network), err)}, nil
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if format, err := rows.Format(ctx, store); err == nil && format == rolluparchive.Format {
		return nil, fmt.Errorf("it is of the family %s: expected one of the family %s, others cannot be verified yet", familyRollup, familyEVM)
	}
	progress := new(verify.Progress)
	shown := newProgress(bar, "verifying", func() (status, bool) { return verifyStatus(progress) })
	defer shown.end()
	report, err = verify.Run(ctx, store, v.Options, progress)
	if errors.Is(err, kv.ErrNotFound) {
		err = errNoBlocks
	}
	return report, err
}

// write writes the answer: for people, or as JSON.
func (a verified) write(out io.Writer, asJSON bool, dir string) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(a)
	}
	if !a.Sound {
		_, err := fmt.Fprintf(out, "%s is not sound:\n\n%s\nPut %s back from a copy, or remove it and import the network again.\n", a.Network, a.Finding.Text(), dir)
		return err
	}
	_, err := fmt.Fprintf(out, "%s: %s blocks, %s transactions, the state as of %s blocks, %s rows checked in %s: sound\n", a.Network,
		readableCount(a.Blocks), readableCount(a.Transactions), readableCount(uint64(a.States)), readableCount(a.Rows),
		time.Duration(a.Seconds*float64(time.Second)).Round(100*time.Millisecond))
	return err
}

// verifyStatus is how far a check is.
func verifyStatus(p *verify.Progress) (status, bool) {
	stage, since, share, rows := p.Now()
	return status{
		part: stage, kind: "stage", since: since, share: share,
		brief:  readableCount(rows) + " rows",
		fields: []any{"rows", rows},
	}, stage != ""
}
