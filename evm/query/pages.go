package query

import (
	"context"

	"ashlar/history/paging"
)

// LogPage calls visit with the logs of a page, and returns where the next page begins, as
// [paging.Walk] does. It uses only the addresses and topics of filter; the last position of
// Topics must not be empty. The range must not extend above the view's head.
func (v *View) LogPage(ctx context.Context, filter *Filter, r paging.Range, visit func(*Log) error) (next *paging.Place, err error) {
	if err := v.history.CheckRange(r.Begin.Block, r.To); err != nil {
		return nil, err
	}
	next, err = v.logPage(ctx, filter, r, visit)
	if pruned := v.history.CheckRange(r.Begin.Block, r.To); pruned != nil { // rows may have been removed meanwhile
		return nil, pruned
	}
	return next, err
}

func (v *View) logPage(ctx context.Context, filter *Filter, r paging.Range, visit func(*Log) error) (next *paging.Place, err error) {
	wanted := filter.criteria()
	logs := v.loader(ctx, r.To)
	defer logs.close()
	extent := v.history.Extent()
	from, err := v.candidates(ctx, wanted, r.Begin.Block, r.To, logs.receipts, false)
	if err != nil {
		return nil, err
	}
	if v.history.Ahead() {
		from = &paging.Ahead{Candidates: from, Most: r.Size, Read: func(found []paging.Found) {
			blocks := make([]foundBlock, len(found))
			for i := range found {
				blocks[i].number = found[i].Block
			}
			logs.ahead(blocks)
		}}
	}
	next, err = paging.Walk(from, r, func(at paging.Place, onPage bool) (bool, error) {
		log, err := logs.at(at.Block, at.Position)
		if err != nil || !wanted.match(&log.Log) {
			return false, err
		}
		if onPage {
			err = visit(log)
		}
		return true, err
	})
	if cerr := from.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = v.checkMoved(extent, r.Begin.Block)
	}
	return next, err
}
