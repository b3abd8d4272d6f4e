package query

import (
	"testing"

	"ashlar/evm/archive"
	"ashlar/history/paging"
	"ashlar/history/postings"
)

// TestCollidingTerms: the index may name logs that a filter does not accept, since collisions of its terms can be constructed.
// Here each term names all logs of the blocks that it is in.
func TestCollidingTerms(t *testing.T) {
	c := newLogChain(t, 9, 200)
	all := make(map[uint64]*postings.Block[int])
	for _, log := range c.logs {
		if all[log.block] == nil {
			all[log.block] = postings.NewBlock[int]()
		}
		all[log.block].Add(0, log.index)
	}
	table, batch := archive.NamedTables().LogPostings, c.store.NewBatch()
	for row, err := range c.store.Walk(t.Context(), table, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range all[table.BlockOf(row.Sort)].Rows() {
			batch.Put(table, row.Partition, row.Sort, value)
		}
	}
	if err := c.store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		f := c.filter()
		want := c.matching(f)
		if got, err := c.ask(t.Context(), f, len(c.logs)); err != nil || !sameLogs(got, want) {
			t.Fatalf("%+v: %d logs, %v, want %d", f, len(got), err, len(want))
		}
		var got []placedLog
		next, err := c.LogPage(t.Context(), f, paging.Range{Begin: paging.Place{Block: f.From}, To: f.To, Size: len(c.logs)}, func(log *Log) error {
			l, err := placedOf(log)
			got = append(got, l)
			return err
		})
		if err != nil || next != nil || !sameLogs(got, want) {
			t.Fatalf("%+v: a page of %d logs, %v, want %d", f, len(got), err, len(want))
		}
	}
}
