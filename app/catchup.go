package app

import (
	"context"
	"log/slog"
	"time"

	"ashlar/app/recent"
	"ashlar/family"
)

const (
	paceEvery  = 5 * time.Second // interval between measurements
	paceLooks  = 12              // measurements used for the rate
	paceLogged = 6               // measurements per log line
	paceFrom   = 8               // minimum number of blocks behind the head to count as catching up
)

// look is a measurement: the position of a network at a time.
type look struct {
	at           time.Time
	head, behind uint64
}

// catchUp calculates how fast a network catches up.
type catchUp struct {
	looks []look // the latest, oldest first
	count int    // since the network fell behind
}

// add adds a measurement. It returns the pace, nil if the network is at the head, and whether to
// log it.
func (c *catchUp) add(now look) (pace *family.CatchUp, logged bool) {
	if now.behind < paceFrom {
		logged = c.count > paceLogged // log the end if the catch-up was logged
		*c = catchUp{}
		return nil, logged
	}
	c.count++
	c.looks = append(c.looks, now)
	c.looks = c.looks[max(0, len(c.looks)-paceLooks):]
	pace = new(family.CatchUp)
	first := c.looks[0]
	if took := now.at.Sub(first.at).Seconds(); took > 0 && now.head > first.head {
		pace.Rate = float64(now.head-first.head) / took
		if nearer := (float64(first.behind) - float64(now.behind)) / took; nearer > 0 {
			pace.Remaining = int64(float64(now.behind)/nearer) + 1
		}
	}
	return pace, c.count > 1 && (c.count-2)%paceLogged == 0
}

// executedHead returns the newest block that a network has executed. Clients may see a newer one, of nodes that answer for it.
func executedHead(status *family.Status) uint64 {
	if source := status.Source; source != nil && status.Consensus == nil && source.Behind > 0 {
		return min(status.Head, source.Best-min(source.Best, source.Behind))
	}
	return status.Head
}

// watchPace watches how fast a network catches up, until ctx is done.
func (n *Network) watchPace(ctx context.Context) error {
	var c catchUp
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case at := <-tick.C:
			status, err := n.Status(ctx)
			if err != nil {
				continue // reported by readiness and metrics
			}
			executed := executedHead(&status)
			pace, logged := c.add(look{at, executed, status.Behind()})
			n.pace.Store(pace)
			switch {
			case logged && pace == nil:
				slog.Info("caught up", "network", n.Name, "block", executed)
			case logged:
				args := []any{"network", n.Name, "block", executed, "behind", status.Behind(), "blocks_per_second", int64(pace.Rate)}
				if pace.Remaining > 0 { // else it is not known
					args = append(args, "remaining", time.Duration(pace.Remaining)*time.Second)
				}
				slog.InfoContext(recent.Progress(ctx), "catching up", args...)
			}
		}
	}
}
