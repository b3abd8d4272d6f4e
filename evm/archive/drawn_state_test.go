package archive_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// checkState checks accounts, slots, codes and both kinds of tries at a block.
func (d *drawn) checkState(number uint64) {
	d.Helper()
	slots := make(map[string][]string) // partitions by account, those that are not zero
	for _, p := range slices.Sorted(maps.Keys(d.rows["slots"])) {
		if word, _ := d.newest("slots", p, number); len(word) > 0 {
			slots[p[:32]] = append(slots[p[:32]], p)
		}
	}
	accounts := trie.NewStackTrie(nil)
	for _, p := range slices.Sorted(maps.Keys(d.rows["accounts"])) {
		row, _ := d.newest("accounts", p, number)
		if len(row) == 0 {
			if len(slots[p]) > 0 {
				d.Errorf("block %d: account %x is deleted or not there yet, but has slots", number, p)
			}
			continue
		}
		account := d.account(row)
		storage := trie.NewStackTrie(nil)
		for _, slot := range slots[p] {
			word, _ := d.newest("slots", slot, number)
			d.must(storage.Update([]byte(slot[32:]), d.encode(word)))
		}
		if root := storage.Hash(); root != account.Root {
			d.Errorf("block %d: the slots of account %x have the root %x, want %x", number, p, root, account.Root)
		}
		if account.Root != types.EmptyRootHash {
			d.walk(number, "\x01"+p, nil, account.Root)
		}
		if hash := common.Hash(account.CodeHash); hash != types.EmptyCodeHash {
			code, _ := d.newest("codes", string(hash[:]), 0)
			if crypto.Keccak256Hash(code) != hash {
				d.Errorf("the code of account %x is another than %x", p, hash)
			}
		}
		d.must(accounts.Update([]byte(p), d.encode(account)))
	}
	if root := accounts.Hash(); root != d.roots[number] {
		d.Errorf("block %d: the accounts have the root %x, want %x", number, root, d.roots[number])
	}
	d.walk(number, "\x00", nil, d.roots[number])
}

func (d *drawn) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *drawn) encode(value any) []byte {
	d.Helper()
	encoded, err := rlp.EncodeToBytes(value)
	d.must(err)
	return encoded
}

func (d *drawn) account(row []byte) *types.StateAccount {
	d.Helper()
	r := &drawnReader{d, row}
	flags := r.take(1)[0]
	account := types.NewEmptyStateAccount()
	account.Nonce = uint64(r.uvarint())
	account.Balance.SetBytes(r.take(int(r.take(1)[0])))
	if flags&1 != 0 {
		account.Root = common.Hash(r.take(32))
	}
	if flags&2 != 0 {
		account.CodeHash = r.take(32)
	}
	r.end()
	return account
}

// walk checks the hashes of all nodes below a path of a trie, whose partitions begin with prefix.
func (d *drawn) walk(number uint64, prefix string, path []byte, want common.Hash) {
	d.Helper()
	node := d.node(number, prefix, path)
	if hash := crypto.Keccak256Hash(node); hash != want {
		d.Fatalf("block %d: the node at %x %x has the hash %x, want %x", number, prefix, path, hash, want)
	}
	d.walkChildren(number, prefix, path, node)
}

func (d *drawn) walkChildren(number uint64, prefix string, path, node []byte) {
	d.Helper()
	items := d.split(node)
	below := func(child, path []byte) {
		kind, content, _, err := rlp.Split(child)
		d.must(err)
		switch {
		case kind == rlp.List: // a node of less than 32 bytes
			if row, _ := d.newest("trie_nodes", prefix+string(path), number); len(row) > 0 {
				d.Errorf("block %d: the node at %x %x has a row, and is in its parent", number, prefix, path)
			}
			d.walkChildren(number, prefix, path, child)
		case len(content) > 0:
			d.walk(number, prefix, path, common.Hash(content))
		}
	}
	if len(items) == 17 {
		for i, child := range items[:16] {
			below(child, append(slices.Clip(path), byte(i)))
		}
		return
	}
	_, key, _, err := rlp.Split(items[0])
	d.must(err)
	if key[0]&0x20 == 0 { // else a leaf
		below(items[1], appendNibbles(slices.Clip(path), key))
	}
}

// split returns the items of a node.
func (d *drawn) split(node []byte) (items [][]byte) {
	d.Helper()
	list, _, err := rlp.SplitList(node)
	d.must(err)
	return d.splitItems(list)
}

func (d *drawn) splitItems(list []byte) (items [][]byte) {
	d.Helper()
	for len(list) > 0 {
		_, _, rest, err := rlp.Split(list)
		d.must(err)
		items = append(items, list[:len(list)-len(rest)])
		list = rest
	}
	return items
}

// appendNibbles appends the nibbles of a hex-prefix encoded key.
func appendNibbles(path, key []byte) []byte {
	if key[0]&0x10 != 0 {
		path = append(path, key[0]&0x0f)
	}
	for _, b := range key[1:] {
		path = append(path, b>>4, b&0x0f)
	}
	return path
}

// node returns the RLP of a node at a block; nil if there is none.
func (d *drawn) node(number uint64, prefix string, path []byte) []byte {
	d.Helper()
	rows := d.rows["trie_nodes"][prefix+string(path)]
	for len(rows) > 0 && rows[0].sort > number {
		rows = rows[1:]
	}
	if len(rows) == 0 || len(rows[0].value) == 0 {
		return nil
	}
	switch row := rows[0].value; row[0] {
	case 0:
		return row[1:]
	case 1:
		return d.leaf(number, prefix, path, row[1:])
	case 2:
		return d.branch(rows)
	default:
		d.Fatalf("the node at %x %x has the form %d", prefix, path, row[0])
		return nil
	}
}

func (d *drawn) leaf(number uint64, prefix string, path, rest []byte) []byte {
	d.Helper()
	nibbles := appendNibbles(slices.Clip(path), rest)
	if len(nibbles) != 64 {
		d.Fatalf("the leaf at %x %x has a key of %d nibbles", prefix, path, len(nibbles))
	}
	key := make([]byte, 32)
	for i := range key {
		key[i] = nibbles[2*i]<<4 | nibbles[2*i+1]
	}
	var value []byte
	if owner := prefix[1:]; owner == "" {
		row, _ := d.newest("accounts", string(key), number)
		value = d.encode(d.account(row))
	} else {
		row, _ := d.newest("slots", owner+string(key), number)
		value = d.encode(row)
	}
	return d.encode([][]byte{rest, value})
}

// branch puts together a branch from a difference and the rows below it.
func (d *drawn) branch(rows []drawnRow) []byte {
	d.Helper()
	children := make(map[int][]byte)
	for i, row := range rows {
		if i > 7 || len(row.value) == 0 || row.value[0] == 1 {
			d.Fatalf("a difference of block %d has no whole branch below it", rows[0].sort)
		}
		if row.value[0] == 0 {
			items := d.split(row.value[1:])
			for at, child := range children {
				items[at] = child
			}
			return d.encode(rawList(items))
		}
		if i > 0 && row.value[1] != rows[i-1].value[1]-1 {
			d.Fatalf("the difference of block %d has %d steps, below one with %d", row.sort, row.value[1], rows[i-1].value[1])
		}
		changed := binary.BigEndian.Uint16(row.value[2:])
		for at, item := range changedAt(changed, d.splitItems(row.value[4:])) {
			if children[at] == nil {
				children[at] = item
			}
		}
	}
	d.Fatalf("a difference of block %d has no whole branch below it", rows[0].sort)
	return nil
}

// changedAt returns items by the positions of the bits that are set.
func changedAt(changed uint16, items [][]byte) map[int][]byte {
	by := make(map[int][]byte)
	for i := range 16 {
		if changed&(1<<i) != 0 && len(by) < len(items) {
			by[i] = items[len(by)]
		}
	}
	return by
}

func rawList(items [][]byte) (list []rlp.RawValue) {
	for _, item := range items {
		list = append(list, item)
	}
	return list
}

// checkNodeRows checks which form each row of trie_nodes has.
func (d *drawn) checkNodeRows() {
	d.Helper()
	for p, rows := range d.rows["trie_nodes"] {
		prefix := p[:1]
		if p[0] == 1 {
			prefix = p[:33]
		}
		var before []byte
		steps := 0
		for _, row := range slices.Backward(rows) {
			node := d.node(row.sort, prefix, []byte(p[len(prefix):]))
			d.checkNodeRow(p, row, before, node, &steps)
			before = node
		}
	}
	for form := range byte(3) {
		if d.forms[form] == 0 {
			d.Errorf("no row of trie_nodes begins with %d", form)
		}
	}
}

// checkNodeRow checks the row of a node, which was before until then. steps are those of the row
// below, and then of this one.
func (d *drawn) checkNodeRow(p string, row drawnRow, before, node []byte, steps *int) {
	d.Helper()
	if bytes.Equal(before, node) {
		d.Errorf("the node at %x has a row of block %d, and did not change", p, row.sort)
	}
	below := *steps
	*steps = 0
	if len(row.value) == 0 {
		return
	}
	d.forms[row.value[0]]++
	possible := false
	if node, before := d.branchItems(node), d.branchItems(before); node != nil && before != nil && below < 7 {
		length, whole := 4, len(row.value)-1
		for i := range node {
			if !bytes.Equal(node[i], before[i]) {
				length += len(node[i])
			}
		}
		if row.value[0] == 2 {
			whole = len(d.encode(rawList(node)))
		}
		possible = 2*length <= whole
	}
	if is := row.value[0] == 2; is != possible || is && int(row.value[1]) != below+1 {
		d.Errorf("the row of the node at %x of block %d is %x, above one with %d steps, want a difference: %v", p, row.sort, row.value, below, possible)
	}
	if row.value[0] == 2 {
		*steps = int(row.value[1])
	}
}

// branchItems returns the items of a branch, nil for another node.
func (d *drawn) branchItems(node []byte) [][]byte {
	if len(node) == 0 {
		return nil
	}
	if items := d.split(node); len(items) == 17 {
		return items
	}
	return nil
}

// checkTraces checks the row of a block in trace_counts, whose checksum covers trace_postings and transaction_changes.
func (d *drawn) checkTraces(number uint64) {
	d.Helper()
	r, _ := d.ofBlock("trace_counts", number)
	row := r.left
	r.left = row[:max(0, len(row)-8)]
	sum := d.sums[number] + fnvOf(number, nil, r.left)
	for range r.uvarint() {
		r.uvarint()
	}
	r.uvarint() // rewards
	r.end()
	if stored := binary.BigEndian.Uint64(row[len(row)-8:]); stored != sum {
		d.Errorf("block %d: the checksum of its traces is %x, want %x", number, stored, sum)
	}
}

// checkExpected checks that the tables that lead to blocks have the noted rows alone.
func (d *drawn) checkExpected() {
	d.Helper()
	for _, table := range []string{"block_hashes", "transaction_hashes", "log_postings"} {
		found := 0
		for p, rows := range d.rows[table] {
			for _, row := range rows {
				want, ok := d.expected[table][p+string(big64(row.sort))]
				if !ok || !bytes.Equal(want, row.value) {
					d.Errorf("%s has the row %x, %d: %x, want %x (%v)", table, p, row.sort, row.value, want, ok)
				}
				found++
			}
		}
		if want := len(d.expected[table]); found != want || want == 0 {
			d.Errorf("%s has %d rows, want %d", table, found, want)
		}
	}
}
