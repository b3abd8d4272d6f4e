package query

import (
	"testing"

	"ashlar/history/paging"
	"ashlar/internal/raced"
)

// TestPagesAreTheLogsThatMatch compares pages of random filters and sizes with a linear search.
func TestPagesAreTheLogsThatMatch(t *testing.T) {
	raced.Skip(t)
	for _, format := range []string{"", "ashlar-evm-3"} {
		c := newLogChainOf(t, 7, 1200, format)
		for range 200 {
			f := c.filter()
			for len(f.Topics) > 0 && len(f.Topics[len(f.Topics)-1]) == 0 {
				f.Topics = f.Topics[:len(f.Topics)-1]
			}
			want := c.matching(f)
			var got []placedLog
			r := paging.Range{Begin: paging.Place{Block: f.From}, To: f.To, Size: 1 + c.random.IntN(60)}
			for {
				next, err := c.LogPage(t.Context(), f, r, func(log *Log) error {
					l, err := placedOf(log)
					got = append(got, l)
					return err
				})
				if err != nil {
					t.Fatalf("%q, %+v, %+v: %v", format, f, r, err)
				}
				if next == nil {
					break
				}
				r.Begin, r.Resumed, r.Size = *next, true, 1+c.random.IntN(60)
			}
			if !sameLogs(got, want) {
				t.Fatalf("%q, %+v: %d logs, want %d", format, f, len(got), len(want))
			}
		}
	}
}
