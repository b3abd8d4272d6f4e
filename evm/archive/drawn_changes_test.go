package archive_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"ashlar/evm/archive"
	"ashlar/evm/execute"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// drawnStep is the value of a key after a step of a block: a word without leading zeros, or what accountText returns.
type drawnStep struct {
	step  int
	value string
}

// accountText is the value of an account, which ends with the hash of its code; "" if it does not exist.
func accountText(account *types.StateAccount) string {
	if account == nil {
		return ""
	}
	return fmt.Sprintf("nonce %d, balance %d, code %x", account.Nonce, account.Balance, account.CodeHash)
}

// codeOf returns the hash of the code in a text of accountText.
func codeOf(text string) common.Hash { return common.HexToHash(text[max(0, len(text)-64):]) }

// value returns the value of a key at a block.
func (d *drawn) value(partition string, at uint64) string {
	d.Helper()
	if len(partition) == 64 {
		word, _ := d.newest("slots", partition, at)
		return string(word)
	}
	return accountText(d.accountAt(partition, at))
}

func (d *drawn) accountAt(partition string, at uint64) *types.StateAccount {
	d.Helper()
	row, _ := d.newest("accounts", partition, at)
	if len(row) == 0 {
		return nil
	}
	return d.account(row)
}

// checkChanges checks the row of a block in transaction_changes: it has what the block changes when it is run in order.
func (d *drawn) checkChanges(a *archive.Archive, executor *execute.Executor, number uint64) {
	d.Helper()
	r, ok := d.ofBlock("transaction_changes", number)
	if number == 0 {
		if ok {
			d.Error("the genesis has a row in transaction_changes")
		}
		return
	}
	ran := d.runInOrder(a, executor, number)
	header := ran.header
	if want := d.config.IsByzantium(header.Number) && !d.config.IsAmsterdam(header.Number, header.Time) && !ran.wiped; ok != want {
		d.Errorf("block %d has a row in transaction_changes: %v, want %v", number, ok, want)
	}
	if !ok {
		return
	}
	got, codes := r.changes(number)
	if ran.transactions == 0 {
		return // no tracer sees the state after its first step
	}
	for p, want := range ran.changes {
		if !slices.Equal(got[p], want) {
			d.Errorf("block %d: the changes of %x are %+v, in order they are %+v", number, p, got[p], want)
		}
		if len(want) == 0 {
			delete(got, p)
		}
	}
	for p, steps := range got {
		if _, known := ran.changes[p]; !known {
			d.Errorf("block %d: changes of %x, which no transaction touches: %+v", number, p, steps)
		}
	}
	if want := d.codesWithin(number, ran.changes); !slices.Equal(codes, want) {
		d.Errorf("block %d: its row has the codes %x, want %x", number, codes, want)
	}
}

// codesWithin returns the hashes of the codes that accounts have only within a block, in order.
func (d *drawn) codesWithin(number uint64, changes map[string][]drawnStep) []common.Hash {
	within := make(map[common.Hash]bool)
	for p, steps := range changes {
		for _, step := range steps {
			if len(p) == 64 || step.value == "" {
				continue
			}
			if code := codeOf(step.value); code != types.EmptyCodeHash && code != codeOf(d.value(p, number-1)) && code != codeOf(d.value(p, number)) {
				within[code] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(within), common.Hash.Cmp)
}

// changes reads a row of transaction_changes. It returns the changes by partition, and the hashes of the codes.
func (r *drawnReader) changes(number uint64) (all map[string][]drawnStep, codes []common.Hash) {
	r.Helper()
	var ofBlock []string // keys that have a row of the block
	for _, table := range []string{"accounts", "slots"} {
		for p := range r.rows[table] {
			if row, _ := r.newest(table, p, number); row != nil && r.isOf(table, p, number) {
				ofBlock = append(ofBlock, p)
			}
		}
	}
	width := int(r.take(1)[0])
	if want := 2 + len(ofBlock)/1600; width != min(want, 3) {
		r.Errorf("block %d: marks of %d bytes for %d keys", number, width, len(ofBlock))
	}
	byMark := make(map[string][]string)
	for _, p := range ofBlock {
		byMark[markOf(p, width)] = append(byMark[markOf(p, width)], p)
	}
	all = make(map[string][]drawnStep)
	before := ""
	marks := &drawnReader{r.drawn, r.take(r.uvarint() * width)}
	for len(marks.left) > 0 {
		mark := string(marks.take(width))
		if len(byMark[mark]) != 1 || mark <= before && len(all) > 0 {
			r.Fatalf("block %d: the mark %x, which %d keys have, comes after %x", number, mark, len(byMark[mark]), before)
		}
		all[byMark[mark][0]], before = nil, mark
	}
	for _, p := range slices.SortedFunc(maps.Keys(all), func(a, b string) int { return bytes.Compare([]byte(markOf(a, width)), []byte(markOf(b, width))) }) {
		all[p] = r.changesOf(number, p, false)
	}
	before = ""
	named := r.uvarint()
	for range named {
		p := string(r.take(int(r.take(1)[0])))
		mark := markOf(p, width)
		if place := mark + p; place <= before || len(byMark[mark]) < 2 && slices.Contains(byMark[mark], p) {
			r.Fatalf("block %d: %x is named, which need not be, or comes after %x", number, p, before)
		} else {
			before = place
		}
		all[p] = r.changesOf(number, p, true)
	}
	r.changed, r.named = r.changed+len(all), r.named+named
	for len(r.left) > 0 {
		codes = append(codes, crypto.Keccak256Hash(r.take(r.uvarint())))
	}
	return all, codes
}

// isOf reports whether a partition has a row of a block.
func (d *drawn) isOf(table, partition string, number uint64) bool {
	return slices.ContainsFunc(d.rows[table][partition], func(row drawnRow) bool { return row.sort == number })
}

// markOf returns the mark of a key.
func markOf(partition string, width int) string {
	mark := []byte(partition[:width])
	if len(partition) == 64 {
		for i := range mark {
			mark[i] ^= partition[32+i]
		}
	}
	return string(mark)
}

// changesOf reads the changes of a key.
func (r *drawnReader) changesOf(number uint64, p string, named bool) (steps []drawnStep) {
	r.Helper()
	head, further := r.uvarint(), 0
	if head&2 != 0 {
		if further = r.uvarint(); further == 0 {
			r.Errorf("block %d: no further changes of %x, but it has their number", number, p)
		}
	}
	after := r.value(p, number)
	for i, step := 0, head>>2; i <= further; i++ {
		if i > 0 {
			step += r.uvarint()
		}
		value := after
		if i < further || head&1 != 0 {
			part := &drawnReader{r.drawn, r.take(int(r.take(1)[0]))}
			if value = string(part.left); len(p) == 32 {
				value = part.accountWithin(number, p)
			}
			if i == further && value == after && !named {
				r.Errorf("block %d: the last value of %x is there, although it is the one after the block", number, p)
			}
		} else if named {
			r.Errorf("block %d: %x is named, and its last value is not there", number, p)
		}
		steps = append(steps, drawnStep{step, value})
	}
	return steps
}

// accountWithin reads the value of an account.
func (r *drawnReader) accountWithin(number uint64, p string) string {
	r.Helper()
	if len(r.left) == 0 {
		return ""
	}
	flags := r.take(1)[0]
	account := types.NewEmptyStateAccount()
	account.Nonce = uint64(r.uvarint())
	account.Balance.SetBytes(r.take(int(r.take(1)[0])))
	before := r.accountAt(p, number-1)
	if hasStorage := before != nil && before.Root != types.EmptyRootHash; (flags&1 != 0) != hasStorage {
		r.Errorf("block %d: the account %x has the flags %d, storage before the block: %v", number, p, flags, hasStorage)
	}
	switch {
	case flags&2 != 0:
		account.CodeHash = r.take(32)
	case flags&4 != 0:
		account.CodeHash = r.accountAt(p, number).CodeHash
	}
	r.end()
	return accountText(account)
}

// systemSlots returns slots that system calls before the transactions of a block change.
func systemSlots(header *types.Header) (slots []common.Hash) {
	const ring = 8191
	for _, slot := range []uint64{header.Time % ring, header.Time%ring + ring, (header.Number.Uint64() - 1) % ring} {
		slots = append(slots, common.BytesToHash(binary.BigEndian.AppendUint64(nil, slot)))
	}
	return slots
}
