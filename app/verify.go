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

	stores "ashlar/app/store"
	"ashlar/evm/verify"
	"ashlar/gateway"
	"ashlar/history/audit"
	"ashlar/history/rows"
	"ashlar/kv"
	starknetarchive "ashlar/starknet/archive"
	starknetverify "ashlar/starknet/verify"
)

// verifyCache is small: nearly all is read once, from beginning to end.
const verifyCache = 64 << 20

// Head, as the end of what is verified, is the last block.
const Head = audit.Head

var (
	// ErrRange says that a network does not have the blocks that are to be verified.
	ErrRange = audit.ErrRange
	// ErrNoState says that the state is to be verified of a network that holds none.
	ErrNoState = errors.New("there is no state to verify")
)

// Verify is what `ashlar verify` is told.
type Verify struct {
	Data    string
	Network string
	verify.Options
	JSON bool
}

// checked is what the check of a family says.
type checked interface {
	outcome() *audit.Report
	// summary is what was checked of a network that is sound.
	summary() string
	// answer is all of it, for JSON.
	answer(network string, seconds float64) any
}

// Run checks a network against itself, shows on bar how far it is, and writes to
// out what it has found. It changes nothing. The error says whether anything is
// wrong.
func (v Verify) Run(ctx context.Context, out io.Writer, bar *os.File) error {
	started := time.Now()
	found, err := v.check(ctx, bar)
	if err != nil {
		return fmt.Errorf("network %s: %w", v.Network, err)
	}
	if err := v.write(out, found, time.Since(started)); err != nil {
		return err
	}
	if !found.outcome().Sound {
		return fmt.Errorf("network %s is not sound", v.Network)
	}
	return nil
}

func (v Verify) check(ctx context.Context, bar *os.File) (found checked, err error) {
	data := dataDir(v.Data)
	if err := gateway.CheckNetworkName(v.Network); err != nil {
		return nil, err
	}
	if err := data.checkThere(); err != nil {
		return nil, err
	}
	if data.isEmpty(v.Network) {
		return nil, fmt.Errorf("%s does not hold it; import it first", v.Data)
	}
	store, err := stores.Open(data.network(v.Network), kv.Options{ReadOnly: true, CacheBytes: verifyCache, Logger: slog.Default()})
	switch {
	case errors.Is(err, kv.ErrInUse) || errors.Is(err, kv.ErrForeign):
		return nil, err
	case err != nil:
		finding := audit.UnreadableStore(data.network(v.Network), err)
		return checkedEVM{&verify.Report{Report: audit.Report{Finding: finding}}}, nil
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	progress := new(audit.Progress)
	shown := newProgress(bar, "verifying", func() (status, bool) { return verifyStatus(progress) })
	defer shown.end()
	if format, formatErr := rows.Format(ctx, store); formatErr == nil && format == starknetarchive.Format {
		found, err = v.checkStarknet(ctx, store, progress)
	} else {
		var report *verify.Report
		report, err = verify.Run(ctx, store, v.Options, progress)
		found = checkedEVM{report}
	}
	if errors.Is(err, kv.ErrNotFound) {
		err = errNoBlocks
	}
	return found, err
}

func (v Verify) checkStarknet(ctx context.Context, store kv.Store, progress *audit.Progress) (checked, error) {
	if v.Full {
		return nil, fmt.Errorf("%w, as it is of the family %s: every block is checked in full without that", ErrNoState, familyStarknet)
	}
	report, err := starknetverify.Run(ctx, store, starknetverify.Options{From: v.From, To: v.To}, progress)
	return checkedStarknet{report}, err
}

// write writes the answer: for people, or as JSON.
func (v Verify) write(out io.Writer, found checked, took time.Duration) error {
	if v.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(found.answer(v.Network, took.Seconds()))
	}
	outcome := found.outcome()
	if !outcome.Sound {
		dir := dataDir(v.Data).network(v.Network)
		_, err := fmt.Fprintf(out, "%s is not sound:\n\n%s\nPut %s back from a copy, or remove it and import the network again.\n", v.Network, outcome.Finding.Text(), dir)
		return err
	}
	_, err := fmt.Fprintf(out, "%s: %s blocks, %s transactions, %s, %s rows checked in %s: sound\n", v.Network,
		readableCount(outcome.Blocks), readableCount(outcome.Transactions), found.summary(), readableCount(outcome.Rows), took.Round(100*time.Millisecond))
	return err
}

// checkedEVM is what the check of an EVM network says.
type checkedEVM struct{ *verify.Report }

func (c checkedEVM) outcome() *audit.Report { return &c.Report.Report }

func (c checkedEVM) summary() string {
	return fmt.Sprintf("the state as of %s blocks", readableCount(uint64(c.States)))
}

func (c checkedEVM) answer(network string, seconds float64) any {
	return struct {
		Network string `json:"network"`
		*verify.Report
		Seconds float64 `json:"seconds"`
	}{network, c.Report, seconds}
}

// checkedStarknet is what the check of a Starknet network says.
type checkedStarknet struct{ *starknetverify.Report }

func (c checkedStarknet) outcome() *audit.Report { return &c.Report.Report }

func (c checkedStarknet) summary() string {
	return fmt.Sprintf("%s events, the hashes of %s blocks recomputed and of %s taken as stored",
		readableCount(c.Events), readableCount(c.Recomputed), readableCount(c.Taken))
}

func (c checkedStarknet) answer(network string, seconds float64) any {
	return struct {
		Network string `json:"network"`
		*starknetverify.Report
		Seconds float64 `json:"seconds"`
	}{network, c.Report, seconds}
}

// verifyStatus is how far a check is.
func verifyStatus(p *audit.Progress) (status, bool) {
	stage, since, share, rows := p.Now()
	return status{
		part: stage, kind: "stage", since: since, share: share,
		brief:  readableCount(rows) + " rows",
		fields: []any{"rows", rows},
	}, stage != ""
}
