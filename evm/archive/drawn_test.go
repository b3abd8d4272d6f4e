package archive_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"math/big"
	"path/filepath"
	"slices"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/demo"
	"ashlar/evm/source/demo/reference"
	"ashlar/evm/source/file"
	"ashlar/internal/raced"
	"ashlar/internal/vectors"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// TestRowsAsDrawn reads whole stores by docs/format.md alone, without the decoders of this
// package: every row must be drawn there, and be what the blocks call for. If it fails, stores of
// earlier versions are misread: the format needs another version, and the page a change.
func TestRowsAsDrawn(t *testing.T) {
	raced.Skip(t)
	if testing.Short() {
		t.Skip("imports a chain")
	}
	t.Run("demo", func(t *testing.T) {
		config := demo.Dense(20)
		config.AmsterdamBlock = 20
		network, err := demo.New(config)
		if err != nil {
			t.Fatal(err)
		}
		builder, err := reference.New(network)
		if err != nil {
			t.Fatal(err)
		}
		var made []*types.Block
		if err := builder.Build(t.Context(), 30, func(b reference.Block) error {
			made = append(made, b.Block)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		g, err := network.Genesis()
		if err != nil {
			t.Fatal(err)
		}
		checkDrawn(t, g, ingesttest.SourceOf(made))
	})
	t.Run("short-lived contracts", func(t *testing.T) {
		g, blocks, err := shortLived()
		if err != nil {
			t.Fatal(err)
		}
		checkDrawn(t, g, ingesttest.SourceOf(blocks))
	})
	t.Run("real", func(t *testing.T) {
		folder := vectors.Path(t, "execution-apis")
		g, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := file.Open(filepath.Join(folder, "chain.rlp"))
		if err != nil {
			t.Fatal(err)
		}
		defer blocks.Close()
		checkDrawn(t, g, blocks)
	})
}

// checkDrawn imports blocks, with a trace index, and checks all rows.
func checkDrawn(t *testing.T, g *core.Genesis, source ingest.Source) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	store, err := pebble.Open(pebble.Options{Path: "chain", FS: vfs.NewMem()})
	must(err)
	defer func() { must(store.Close()) }()
	a, err := archive.Create(t.Context(), store, g, archive.TraceIndex)
	must(err)
	executor, err := execute.New(g.Config, execute.RecordTraces(true))
	must(err)
	importer, err := ingest.New(t.Context(), a, executor, g)
	must(err)
	must(importer.Import(t.Context(), source))

	d := readDrawn(t, store)
	d.config = g.Config
	if d.head == 0 {
		t.Fatal("nothing was imported")
	}
	difficulty := new(big.Int)
	for number := range d.head + 1 {
		d.checkBlock(number, difficulty)
		d.checkTraces(number)
		d.checkChanges(a, executor, number)
	}
	if d.changed == 0 || d.named == 0 {
		t.Errorf("%d keys are in rows of transaction_changes, %d of them named", d.changed, d.named)
	}
	d.checkExpected()
	for _, number := range []uint64{0, d.head / 3, 2 * d.head / 3, d.head} {
		d.checkState(number)
	}
	d.checkNodeRows()
}

// drawnRow is a row of a partition.
type drawnRow struct {
	sort  uint64
	value []byte
}

// drawn are the rows of a store by table and partition, the newest first, and what the blocks
// call for beside the rows with one for each block.
type drawn struct {
	*testing.T
	config   *params.ChainConfig
	head     uint64
	rows     map[string]map[string][]drawnRow
	expected map[string]map[string][]byte // by table, and partition with sort key: the value
	roots    map[uint64]common.Hash       // of the states
	sums     map[uint64]uint64            // of the rows in trace_postings and transaction_changes, by block
	forms    map[byte]int                 // rows in trie_nodes by their first byte
	changed  int                          // keys in transaction_changes
	named    int                          // those of them that are named
}

func readDrawn(t *testing.T, store kv.Store) *drawn {
	t.Helper()
	d := &drawn{T: t, rows: make(map[string]map[string][]drawnRow), expected: make(map[string]map[string][]byte), roots: make(map[uint64]common.Hash), sums: make(map[uint64]uint64), forms: make(map[byte]int)}
	for _, table := range archive.Tables() {
		partitions := make(map[string][]drawnRow)
		for row, err := range store.Walk(t.Context(), table, 0) {
			if err != nil {
				t.Fatal(err)
			}
			p := string(row.Partition)
			partitions[p] = append(partitions[p], drawnRow{row.Sort, bytes.Clone(row.Value)})
		}
		for _, rows := range partitions {
			slices.SortFunc(rows, func(a, b drawnRow) int { return cmp.Compare(b.sort, a.sort) })
		}
		d.rows[table.Name], d.expected[table.Name] = partitions, make(map[string][]byte)
	}
	settled, err := store.Pointer(t.Context(), "settled")
	if err != nil {
		t.Fatal(err)
	}
	d.head = binary.BigEndian.Uint64(settled)
	for _, table := range []string{"trace_postings", "transaction_changes"} {
		for p, rows := range d.rows[table] {
			for _, row := range rows {
				d.sums[row.sort] += fnvOf(row.sort, []byte(p), row.value)
			}
		}
	}
	return d
}

// newest returns the value of a thing at a block, or false if it had none yet.
func (d *drawn) newest(table, partition string, at uint64) ([]byte, bool) {
	for _, row := range d.rows[table][partition] {
		if row.sort <= at {
			return row.value, true
		}
	}
	return nil, false
}

// ofBlock returns a reader of the row of a block in a table with one row for each.
func (d *drawn) ofBlock(table string, number uint64) (*drawnReader, bool) {
	for _, row := range d.rows[table][string(big64(number>>10))] {
		if row.sort == number {
			return &drawnReader{d, row.value}, true
		}
	}
	return &drawnReader{d, nil}, false
}

func (d *drawn) expect(table string, partition []byte, sort uint64, value []byte) {
	d.expected[table][string(partition)+string(big64(sort))] = value
}

func big64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func fnvOf(number uint64, partition, value []byte) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write(slices.Concat(big64(number), partition, value)) // never fails
	return hash.Sum64()
}

// drawnReader reads parts of a value.
type drawnReader struct {
	*drawn
	left []byte
}

func (r *drawnReader) take(n int) []byte {
	r.Helper()
	if n < 0 || n > len(r.left) {
		r.Fatalf("a row ends %d bytes too early", n-len(r.left))
	}
	part := r.left[:n]
	r.left = r.left[n:]
	return part
}

func (r *drawnReader) uvarint() int {
	r.Helper()
	number, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.Fatal("a row has no uvarint where one is drawn")
	}
	r.take(n)
	return int(number)
}

// items reads a count and end offsets, and calls item with the part of each; the parts are behind
// what between reads.
func (r *drawnReader) items(between func(n int), item func(i int, part *drawnReader)) {
	r.Helper()
	ends := make([]int, r.uvarint())
	for i := range ends {
		ends[i] = int(binary.LittleEndian.Uint32(r.take(4)))
	}
	between(len(ends))
	begin := 0
	for i, end := range ends {
		item(i, &drawnReader{r.drawn, r.take(end - begin)})
		begin = end
	}
	r.end()
}

func (r *drawnReader) end() {
	r.Helper()
	if len(r.left) > 0 {
		r.Fatalf("a row has %d bytes more than is drawn", len(r.left))
	}
}

func (r *drawnReader) decode(encoded []byte, into any) {
	r.Helper()
	if err := rlp.DecodeBytes(encoded, into); err != nil {
		r.Fatal(err)
	}
}

// checkBlock checks the rows of a block in the tables with one for each, and notes the others.
// difficulty is the total one of the block before, and then of this one.
func (d *drawn) checkBlock(number uint64, difficulty *big.Int) {
	d.Helper()
	r, _ := d.ofBlock("headers", number)
	hash, size := common.Hash(r.take(32)), r.uvarint()
	total := r.take(r.uvarint())
	var header types.Header
	r.decode(r.left, &header)
	difficulty.Add(difficulty, header.Difficulty)
	if header.Hash() != hash || header.Number.Uint64() != number || !bytes.Equal(total, difficulty.Bytes()) {
		d.Errorf("block %d: the row of its header has the hash %x and the total difficulty %x", number, hash, total)
	}
	d.roots[number] = header.Root
	d.expect("block_hashes", hash[:6], number, nil)
	block := types.NewBlockWithHeader(&header).WithBody(d.body(number, &header))
	if int(block.Size()) != size || types.DeriveSha(block.Transactions(), trie.NewListHasher()) != header.TxHash || types.CalcUncleHash(block.Uncles()) != header.UncleHash {
		d.Errorf("block %d: its body is another, or its size is not %d", number, size)
	}
	if receipts := d.receipts(number, block.Transactions()); types.DeriveSha(receipts, trie.NewListHasher()) != header.ReceiptHash {
		d.Errorf("block %d: its receipts are others", number)
	}
	list, ok := d.ofBlock("access_lists", number)
	if want := header.BlockAccessListHash; ok != (want != nil) || ok && crypto.Keccak256Hash(list.left) != *want {
		d.Errorf("block %d: its access list is there: %v, want hash %x", number, ok, want)
	}
}

// body returns the body of a block, whose senders it checks.
func (d *drawn) body(number uint64, header *types.Header) (body types.Body) {
	d.Helper()
	r, _ := d.ofBlock("bodies", number)
	signer := types.MakeSigner(d.config, header.Number, header.Time)
	var senders []byte
	r.items(func(n int) {
		senders = r.take(n * 20)
		r.decode(r.take(r.uvarint()), &body.Uncles)
		withdrawals := r.take(r.uvarint())
		if (len(withdrawals) > 0) != (header.WithdrawalsHash != nil) {
			d.Fatalf("block %d: its withdrawals take %d bytes", number, len(withdrawals))
		}
		if len(withdrawals) > 0 {
			r.decode(withdrawals, &body.Withdrawals)
		}
	}, func(i int, part *drawnReader) {
		transaction := new(types.Transaction)
		if err := transaction.UnmarshalBinary(part.left); err != nil {
			d.Fatal(err)
		}
		body.Transactions = append(body.Transactions, transaction)
		from, err := types.Sender(signer, transaction)
		if err != nil || from != common.Address(senders[i*20:][:20]) {
			d.Errorf("block %d: transaction %d has the sender %x, %v", number, i, senders[i*20:][:20], err)
		}
		hash := transaction.Hash()
		d.expect("transaction_hashes", hash[:6], number<<20|uint64(i), nil)
	})
	return body
}

// receipts returns the receipts of a block.
func (d *drawn) receipts(number uint64, transactions types.Transactions) (all types.Receipts) {
	d.Helper()
	r, _ := d.ofBlock("receipts", number)
	logs := 0
	terms := make(map[[12]byte][]int)
	r.items(func(int) {}, func(i int, part *drawnReader) {
		receipt := &types.Receipt{Type: transactions[i].Type()}
		outcome := part.take(1)[0]
		if outcome&3 == 2 {
			receipt.PostState = part.take(32)
		}
		receipt.Status = uint64(outcome & 1)
		named := outcome&4 != 0
		if named && common.Hash(part.take(32)) != transactions[i].Hash() {
			d.Errorf("block %d: receipt %d has the hash of another transaction", number, i)
		}
		receipt.CumulativeGasUsed = uint64(part.uvarint())
		first, count := part.uvarint(), part.uvarint()
		if first != logs || named != (count > 0) {
			d.Errorf("block %d: receipt %d has %d logs from %d on (want from %d on), and a hash: %v", number, i, count, first, logs, named)
		}
		for ; logs < first+count; logs++ {
			receipt.Logs = append(receipt.Logs, part.log(terms, logs))
		}
		part.end()
		receipt.Bloom = types.CreateBloom(receipt)
		all = append(all, receipt)
	})
	for term, positions := range terms {
		var row []byte
		next := 0
		for _, position := range slices.Compact(positions) {
			row = binary.AppendUvarint(row, uint64(position-next))
			next = position + 1
		}
		d.expect("log_postings", term[:], number, row)
	}
	return all
}

// log reads a log, and adds its position to those of its terms.
func (r *drawnReader) log(terms map[[12]byte][]int, position int) *types.Log {
	r.Helper()
	add := func(kind byte, value []byte) {
		hash := sha256.Sum256(append([]byte{kind}, value...))
		term := [12]byte(hash[:])
		terms[term] = append(terms[term], position)
	}
	log := &types.Log{Address: common.Address(r.take(20))}
	add(0, log.Address[:])
	for i := range r.take(1)[0] {
		log.Topics = append(log.Topics, common.Hash(r.take(32)))
		add(i+1, log.Topics[i][:])
	}
	log.Data = r.take(r.uvarint())
	return log
}
