package network

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"

	"ashlar/evm/archive"
	"ashlar/evm/ingest"
	"ashlar/evm/snapshot"
	"ashlar/family"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// CreateSnapshot implements [family.Snapshotter].
func (Family) CreateSnapshot(ctx context.Context, store kv.Store, s family.NewSnapshot) (family.Snapshotting, error) {
	a, err := openSettled(ctx, store)
	if err != nil {
		return nil, err
	}
	creator, err := snapshot.New(ctx, a, snapshot.Options{Folder: s.Folder, Head: s.Block, From: s.From})
	if pruned := (*archive.Pruned)(nil); errors.Is(err, snapshot.ErrRange) || errors.As(err, &pruned) {
		return nil, rangeError{err}
	}
	if err != nil {
		return nil, err
	}
	return snapshotting{creator}, nil
}

// snapshotting implements [family.Snapshotting].
type snapshotting struct{ *snapshot.Creator }

// Progress implements [family.Snapshotting].
func (s snapshotting) Progress() family.SnapshotProgress {
	done := s.Creator.Progress()
	return family.SnapshotProgress{Share: done.Share, Rates: []family.Rate{
		{Unit: "accounts/s", Count: float64(done.Accounts)}, {Unit: "slots/s", Count: float64(done.Slots)},
	}}
}

// SnapshotFlags implements [family.Snapshotter].
func (f Family) SnapshotFlags() (flags []family.Flag) {
	for _, flag := range f.Flags() {
		if flag.Name != flagState {
			flags = append(flags, flag)
		}
	}
	return flags
}

// LoadSnapshot implements [family.Snapshotter].
func (Family) LoadSnapshot(ctx context.Context, p family.Place, s family.Snapshot) (family.Import, error) {
	head, err := parseHash(s.Block)
	if err != nil {
		return nil, err
	}
	traces, err := parseTraceIndex(s.Flags[flagTraceIndex])
	if err != nil {
		return nil, err
	}
	older, err := parseOlder(s.Flags[flagOlder])
	if err != nil {
		return nil, err
	}
	named := s.Flags[flagGenesis]
	if named == "" {
		return nil, family.Usage(fmt.Errorf("a snapshot needs the --%s of the network", flagGenesis))
	}
	if err := checkGenesisName(p.Name, named); err != nil {
		return nil, err
	}
	first, err := loadGenesis(named)
	if err != nil {
		return nil, err
	}
	warnOfUnknownFork(p.Name, first.Config)
	source, err := snapshot.Open(ctx, s.From, first, head)
	if err != nil {
		return nil, err
	}
	return beginWith(ctx, p, settings{first, traces, older}, &snapshotOrigin{Source: source})
}

func parseHash(text string) (common.Hash, error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil || len(raw) != common.HashLength {
		return common.Hash{}, family.Usage(fmt.Errorf("invalid --block %q (want the hash of the snapshot's last block: 0x and 64 hexadecimal digits)", text))
	}
	return common.Hash(raw), nil
}

// snapshotOrigin is a snapshot as an [origin].
type snapshotOrigin struct {
	*snapshot.Source
	checked bool
}

// Prepare implements [origin]: it follows the headers up to the head that the operator
// named, and the blocks down as far as the snapshot has them.
func (s *snapshotOrigin) Prepare(ctx context.Context, show family.Show) (*big.Int, error) {
	show.Begin("headers", func() (read, total int64) {
		done, all := s.Checked()
		return int64(done), int64(all)
	})
	total, proven, err := s.Check(ctx)
	if err != nil {
		return nil, err
	}
	s.checked = true
	if !proven {
		slog.Warn("the total difficulty cannot be proven: it is what the maker of the snapshot says", "block", s.State().Number, "total_difficulty", total)
	}
	return total, nil
}

// Continue implements [origin]: it executes the blocks after the first one with state.
func (s *snapshotOrigin) Continue(ctx context.Context, i *imported, show family.Show) error {
	last := s.Last()
	if settled, _ := i.archive.Settled(); settled.Number < last.Number {
		if err := s.follow(ctx, i, settled.Number, show); err != nil {
			return fmt.Errorf("snapshot: blocks after %d: %w", s.State().Number, err)
		}
	}
	header, err := i.archive.Header(ctx, last.Number)
	if err == nil && header.Hash != last.Hash {
		err = fmt.Errorf("%w: block %s is in the snapshot, %#x in the archive", ingest.ErrOtherChain, last, header.Hash)
	}
	return err
}

func (s *snapshotOrigin) follow(ctx context.Context, i *imported, settled uint64, show family.Show) error {
	if !s.checked {
		if _, err := s.Prepare(ctx, show); err != nil {
			return err
		}
	}
	blocks, err := s.Later(ctx, settled)
	if err != nil {
		return err
	}
	first, last := s.State().Number, s.Last().Number
	show.Begin(fmt.Sprintf("blocks to %d", last), func() (read, total int64) {
		return int64(max(first, i.importer.Progress().Head) - first), int64(last - first)
	})
	return errors.Join(i.importer.Import(ctx, blocks), blocks.Close())
}
