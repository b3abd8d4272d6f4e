package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/evm/snapshot/origin"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// Source is an open snapshot as the beginning of an archive. It implements
// ingest.StateSource. It belongs to one goroutine, except for Progress.
type Source struct {
	manifest *Manifest
	from     *origin.Origin
	genesis  *core.Genesis
	headers  atomic.Uint64 // checked so far

	head    *types.Header // first block with state
	slots   *stream       // at the slots of address at
	at      common.Hash
	passing bool // no slots were asked for yet
	code    []byte
	codeOf  common.Hash // hash of code; zero: none
	blocks  *stream
}

// Open reads the manifest of a snapshot, whose head must be the block with the given hash,
// of the chain with the genesis.
func Open(ctx context.Context, from string, genesis *core.Genesis, head common.Hash) (*Source, error) {
	files, err := origin.Open(from, manifestName)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return open(ctx, files, genesis, head)
}

func open(ctx context.Context, files *origin.Origin, genesis *core.Genesis, head common.Hash) (*Source, error) {
	s := &Source{from: files, genesis: genesis, passing: true}
	_, err := files.Get(ctx, manifestName, maxManifest, func(text []byte) (err error) {
		s.manifest, err = parseManifest(text)
		return err
	})
	if err == nil {
		err = s.expect(head)
	}
	if err != nil {
		files.Close()
		return nil, err
	}
	return s, nil
}

// expect compares the claims of the manifest with what the operator knows.
func (s *Source) expect(head common.Hash) error {
	switch m, genesis := s.manifest, s.genesis.ToBlock().Hash(); {
	case m.Genesis != genesis:
		return fmt.Errorf("%w: its genesis is %#x (want %#x)", ErrFalse, m.Genesis, genesis)
	case m.ChainID != chainID(s.genesis):
		return fmt.Errorf("%w: its chain ID is %.100q (want %s)", ErrFalse, m.ChainID, chainID(s.genesis))
	case m.Head.Hash != head:
		return fmt.Errorf("%w: its head is block %d (%#x), not %#x", ErrFalse, m.Head.Number, m.Head.Hash, head)
	}
	return nil
}

// Close releases what is open.
func (s *Source) Close() error {
	s.slots.close()
	s.blocks.close()
	s.from.Close()
	return nil
}

// State returns the first block with state, before Check as the manifest claims.
func (s *Source) State() chain.Ref { return s.manifest.State.ref() }

// Last returns the head.
func (s *Source) Last() chain.Ref { return s.manifest.Head.ref() }

// Contents names the accounts, slots and codes. Copies of a snapshot have the same ones, whatever
// server has them.
func (s *Source) Contents() common.Hash {
	name := sha256.New()
	for _, kind := range []Kind{Accounts, Slots} {
		for _, c := range s.manifest.Chunks[kind] {
			fmt.Fprintf(name, "%s %x\n", kind, c.SHA256)
		}
	}
	return common.Hash(name.Sum(nil))
}

// Progress returns how many bytes of the chunks have been read, and the size of all. Some
// chunks are read twice, and some not at all after an interruption.
func (s *Source) Progress() (read, total int64) { return s.from.Read(), s.manifest.Bytes() }

// Check proves that the block with state and those before it that are part of the snapshot
// are ancestors of the head. Nothing was stored yet, so a false snapshot costs little. It
// returns the total difficulty of the block, and whether that is proven too.
func (s *Source) Check(ctx context.Context) (total *big.Int, proven bool, err error) {
	if err := s.checkHeaders(ctx); err != nil {
		return nil, false, err
	}
	if total, err = s.manifest.totalDifficulty(); err != nil {
		return nil, false, err
	}
	proven, err = s.checkDifficulty(ctx, total)
	return total, proven, err
}

// checkHeaders follows the headers from the block with state to the head.
func (s *Source) checkHeaders(ctx context.Context) error {
	headers := newHeaders(ctx, s, 0)
	defer headers.close()
	for number := s.manifest.State.Number; number <= s.manifest.Head.Number; number++ {
		header, err := headers.next(ctx)
		if err != nil {
			return err
		}
		if number == s.manifest.State.Number {
			if hash := header.Hash(); hash != s.manifest.State.Hash {
				return fmt.Errorf("%w: %s: block %d is %#x, the manifest names %#x", ErrFalse, headers.place(), number, hash, s.manifest.State.Hash)
			}
			s.head = header
		}
		s.headers.Store(number - s.manifest.State.Number + 1)
	}
	if headers.last != s.manifest.Head.Hash {
		return fmt.Errorf("%w: %s: the headers lead to block %d (%#x), not to the head %#x", ErrFalse, headers.place(), s.manifest.Head.Number, headers.last, s.manifest.Head.Hash)
	}
	return nil
}

// checkDifficulty follows the blocks from the one with state down, and compares the total
// difficulty with what is known of it. It is proven if they reach block 1, or if the chain
// has no work.
func (s *Source) checkDifficulty(ctx context.Context, total *big.Int) (proven bool, err error) {
	merge, first := s.genesis.Config.TerminalTotalDifficulty, s.genesis.ToBlock()
	blocks := newStream(ctx, s.from, Blocks, s.manifest.Chunks[Blocks], 0)
	defer blocks.close()
	below, hash, number := new(big.Int).Set(total), s.head.Hash(), s.manifest.State.Number
	for ; number > 0; number-- {
		one, err := nextBlock(ctx, blocks)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, err
		}
		if got := one.Block.Hash(); got != hash || one.Block.NumberU64() != number {
			return false, fmt.Errorf("%w: %s: block %d (%#x) instead of %d (%#x)", ErrFalse, blocks.place(), one.Block.NumberU64(), got, number, hash)
		}
		below.Sub(below, one.Block.Difficulty())
		hash = one.Block.ParentHash()
	}
	wrong := func(why string) error {
		return fmt.Errorf("%w: the total difficulty of block %d is %d: %s", ErrFalse, s.manifest.State.Number, total, why)
	}
	switch {
	case number > oldest(s.manifest.State.Number)-1:
		return false, fmt.Errorf("%w: %s: block %d is missing", ErrDamaged, blocks.place(), number)
	case number == 0 && hash != first.Hash():
		return false, fmt.Errorf("%w: %s: block 1 has the parent %#x, the genesis is %#x", ErrFalse, blocks.place(), hash, first.Hash())
	case number == 0 && below.Cmp(first.Difficulty()) != 0:
		return false, wrong(fmt.Sprintf("the genesis would have %d (want %d)", below, first.Difficulty()))
	case below.Cmp(first.Difficulty()) < 0:
		return false, wrong("the blocks have more than that")
	case merge != nil && s.head.Difficulty.Sign() == 0 && total.Cmp(merge) < 0:
		return false, wrong(fmt.Sprintf("the block is after the merge, which is at %d", merge))
	case merge != nil && s.head.Difficulty.Sign() > 0 && new(big.Int).Sub(total, s.head.Difficulty).Cmp(merge) >= 0:
		return false, wrong(fmt.Sprintf("the block is before the merge, which is at %d", merge))
	case merge != nil && merge.Cmp(first.Difficulty()) <= 0 && total.Cmp(first.Difficulty()) != 0:
		return false, wrong(fmt.Sprintf("all blocks are after the merge (want %d)", first.Difficulty()))
	}
	return number == 0 || merge != nil && merge.Cmp(first.Difficulty()) <= 0, nil
}

// oldest returns the number of the first block that is part of a snapshot.
func oldest(state uint64) uint64 {
	if state > ancestors+1 {
		return state - ancestors
	}
	return 1
}

func chainID(genesis *core.Genesis) string {
	if genesis.Config.ChainID == nil {
		return "0"
	}
	return genesis.Config.ChainID.String()
}

// Checked returns how many headers Check has followed, and how many there are.
func (s *Source) Checked() (done, total uint64) {
	return s.headers.Load(), s.manifest.Head.Number - s.manifest.State.Number + 1
}

// Head implements ingest.StateSource, after Check.
func (s *Source) Head() *types.Header { return s.head }

// Accounts implements ingest.StateSource.
func (s *Source) Accounts(ctx context.Context, found func(common.Hash, *types.StateAccount) error) error {
	accounts := newStream(ctx, s.from, Accounts, s.manifest.Chunks[Accounts], 0)
	defer accounts.close()
	for {
		record, err := accounts.record(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		address, account, err := s.account(record)
		if err != nil {
			return err
		}
		if err := found(address, account); err != nil {
			return fmt.Errorf("%s: %w", record.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// account reads an account, and the code with it.
func (s *Source) account(record *cursor) (address common.Hash, _ *types.StateAccount, err error) {
	key, err := record.take(common.HashLength)
	if err != nil {
		return address, nil, err
	}
	slim, err := record.field()
	if err != nil {
		return address, nil, err
	}
	code, err := record.field()
	if err != nil {
		return address, nil, err
	}
	account, err := types.FullAccount(slim)
	if err == nil && len(account.CodeHash) != common.HashLength {
		err = fmt.Errorf("a hash of %d bytes", len(account.CodeHash))
	}
	if err != nil {
		return address, nil, record.damaged("account %#x: %w", key, err)
	}
	if s.code, s.codeOf = code, (common.Hash{}); len(code) > 0 {
		s.codeOf = crypto.Keccak256Hash(code)
	}
	return common.Hash(key), account, nil
}

// Code implements ingest.StateSource: it has the code of the account that Accounts passed
// on last, if that is the first one with it.
func (s *Source) Code(_ context.Context, hash common.Hash) ([]byte, error) {
	if s.codeOf != hash {
		return nil, fmt.Errorf("%w: code %#x is not with the first account that has it", ErrDamaged, hash)
	}
	return s.code, nil
}

// Slots implements ingest.StateSource. Accounts must be asked for in ascending order.
func (s *Source) Slots(ctx context.Context, address, _ common.Hash, found func(slot common.Hash, value []byte) error) error {
	if s.slots == nil {
		chunks := s.manifest.Chunks[Slots]
		index, _ := slices.BinarySearchFunc(chunks, address, func(c Chunk, a common.Hash) int { return c.Account.Cmp(a) })
		index = max(0, index-1) // where the account's slots may begin
		s.slots = newStream(context.WithoutCancel(ctx), s.from, Slots, chunks, index)
	}
	for {
		more := false
		record, err := s.slots.record(ctx)
		if err == nil {
			more, err = s.slot(record, address, found)
		}
		if errors.Is(err, io.EOF) {
			more, err = false, nil
		}
		if err == nil && !more && s.at != address {
			err = fmt.Errorf("%w: %s: the slots of account %#x are missing", ErrDamaged, s.slots.place(), address)
		}
		if err != nil || !more {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// slot reads a record of slots. It returns false, and stays at the record, if that begins
// the slots of an account after address.
func (s *Source) slot(record *cursor, address common.Hash, found func(slot common.Hash, value []byte) error) (more bool, err error) {
	began := record.at
	size, err := record.take(1)
	if err != nil {
		return false, err
	}
	key, err := record.take(common.HashLength)
	if err != nil {
		return false, err
	}
	if size[0] == 0 {
		switch next := common.Hash(key); {
		case next.Cmp(s.at) < 0, next.Cmp(address) < 0 && !s.passing:
			return false, record.damaged("slots of account %#x, where those of %#x are expected", key, address)
		case next.Cmp(address) > 0:
			record.at = began
			return false, nil
		default:
			s.at = next
			s.passing = s.passing && next != address
			return true, nil
		}
	}
	word, err := record.take(uint64(size[0]))
	switch {
	case err != nil:
		return false, err
	case size[0] > common.HashLength:
		return false, record.damaged("a slot with %d bytes (want at most %d)", size[0], common.HashLength)
	case began == 0:
		return false, record.damaged("the chunk does not begin with an account")
	case s.at != address:
		return true, nil // before an interruption
	}
	value, err := rlp.EncodeToBytes(word)
	if err != nil {
		return false, err
	}
	if err := found(common.Hash(key), value); err != nil {
		return false, fmt.Errorf("%s: %w", record.name, err)
	}
	return true, nil
}
