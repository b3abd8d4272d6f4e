package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/app/config"
	"ashlar/family"

	"golang.org/x/sync/singleflight"
)

const (
	// farBehind is how many blocks a network may be behind the best head that it knows of
	// and still be ready.
	farBehind = 32
	// oldHead is the age of the newest block from which on a network must hear of its
	// upstream nodes or its consensus client to be ready. An idle chain has old blocks, too.
	oldHead = 2 * time.Minute
	// readyTime is how long a check may take. In a cluster, a store whose nodes are lost refuses reads before.
	readyTime = 15 * time.Second
)

// readyCheck returns a function like ready. Anyone may ask it at any rate, without a key, so those who ask while a check is
// under way share its result. A check goes on without the request that began it.
func (s *Service) readyCheck(c config.Config) func(context.Context) error {
	var asking singleflight.Group
	return func(ctx context.Context) error {
		_, err, _ := asking.Do("", func() (any, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime)
			defer cancel()
			err := s.ready(ctx, c)
			if err != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w: the check has not ended within %v", err, readyTime)
			}
			return nil, err
		})
		return err
	}
}

// ready returns why the service is not ready: the accounts cannot be changed, processes for
// scripts cannot be started, or a network cannot be read or is not ready, or should be served
// and is not.
func (s *Service) ready(ctx context.Context, c config.Config) error {
	if err := s.serverProblem(); err != nil {
		return err
	}
	if u, there := s.missing(ctx, c); there {
		return errors.New(u.String())
	}
	for n := range s.asked() {
		status, err := n.Status(ctx)
		if err == nil {
			err = notReady(&status, c.Networks[n.Name].Behind, time.Now())
		}
		if err != nil {
			return fmt.Errorf("network %s: %w", n.Name, err)
		}
	}
	return nil
}

// serverProblem returns why the service is not ready whatever its networks are.
func (s *Service) serverProblem() error {
	if err := s.accountsProblem(); err != nil {
		return fmt.Errorf("accounts: %w", err)
	}
	if err := s.workersProblem(); err != nil {
		return fmt.Errorf("processes for clients' scripts: %w", err)
	}
	return nil
}

// workersProblem returns why processes for clients' scripts cannot be started, nil if they can.
func (s *Service) workersProblem() error {
	if s.workers == nil {
		return nil
	}
	return s.workers.Problem()
}

// accountsProblem returns what keeps accounts and keys from being changed, stored, or read
// from a store that other processes change, too; nil if nothing does. In a cluster it also
// tells whether the store can be reached.
func (s *Service) accountsProblem() error {
	if s.people.store == nil {
		return nil
	}
	if refused := s.accountsRefused(); refused != nil {
		return fmt.Errorf("the store refuses writes: %w", refused)
	}
	if why := s.people.unreadChanges(); why != nil {
		return fmt.Errorf("changes of accounts and keys are not exchanged with other processes: %w", why)
	}
	if unsaved := s.accounts.Unsaved(); unsaved != nil && unsaved.Why != "" {
		return errors.New(unsaved.String())
	}
	return nil
}

// accountsRefused returns why the accounts' store refuses writes, nil if it does not.
func (s *Service) accountsRefused() error {
	if s.people.store == nil {
		return nil
	}
	return s.people.store.Stats().Refused
}

// notReady returns why a network is not ready, nil if it is. oldest is the age that its
// newest block may have; 0: any. A network that follows nothing is ready otherwise,
// unless it is a demo that is stopped.
func notReady(status *family.Status, oldest time.Duration, now time.Time) error {
	age := now.Sub(time.Unix(int64(status.HeadTime), 0)).Round(time.Second)
	if oldest > 0 && age > oldest {
		err := fmt.Errorf("it is behind: its newest block %d is %s old, expected at most %v", status.Head, Lasting(age), oldest)
		if fork := status.UnknownFork; fork != nil && now.Unix() >= fork.Time {
			err = fmt.Errorf("%w: %s", err, fork.Warning(now))
		}
		return err
	}
	alone := status.Source == nil && status.Consensus == nil
	if stopped := status.Stopped; stopped != nil {
		what := "following"
		if alone {
			what = "making or settling blocks"
		}
		return fmt.Errorf("%s is stopped since %s: %s", what, time.Unix(stopped.Since, 0).UTC().Format(time.RFC3339), stopped.Why)
	}
	if alone {
		return nil
	}
	if status.Refused != "" {
		return errors.New("its store refuses writes: " + status.Refused)
	}
	if why := disagreement(status, now); why != "" {
		return errors.New(why)
	}
	if why := setAside(status.Source); why != "" {
		return errors.New(why)
	}
	if behind := behindShown(status); behind > farBehind {
		return fmt.Errorf("it is %d blocks behind the head, expected at most %d", behind, farBehind)
	}
	if age > oldHead && !sourceReached(status, now) {
		if status.Head == 0 && status.HeadTime == 0 {
			return fmt.Errorf("it has no block above 0, and %s", whyUnreached(status, now))
		}
		return fmt.Errorf("its newest block %d is %s old, and %s", status.Head, Lasting(age), whyUnreached(status, now))
	}
	return nil
}

// behindShown returns how many blocks a network is behind the best head, by the head that clients see. While a network
// executes blocks far below the head of the nodes that answer for it, clients see theirs.
func behindShown(status *family.Status) uint64 {
	behind := status.Behind()
	if source := status.Source; source != nil && status.Consensus == nil {
		behind = min(behind, source.Best-min(source.Best, status.Head))
	}
	return behind
}

// setAside says until when all nodes of a network are set aside, "" if one is not.
func setAside(source *family.SourceStatus) string {
	if source == nil || source.AsideUntil() == 0 {
		return ""
	}
	until := time.Unix(source.AsideUntil(), 0)
	return "all its upstreams are set aside because of false answers, the first until " + until.UTC().Format(time.RFC3339)
}

// disagreement says for how long too few upstream nodes agree on a head, if that is long.
// Nodes often disagree for a moment, when a block is new.
func disagreement(status *family.Status, now time.Time) string {
	if status.Source == nil || status.Source.Agreement == nil || status.Source.Agreement.Since == 0 {
		return ""
	}
	since := time.Unix(status.Source.Agreement.Since, 0)
	if now.Sub(since) <= oldHead {
		return ""
	}
	return fmt.Sprintf("its upstreams do not agree since %s: %s", since.UTC().Format(time.RFC3339), status.Source.Problem)
}

// sourceReached reports whether a source of newer heads is reachable. A consensus client that sends blocks but names no head is
// not, nor is one whose head no node has.
func sourceReached(status *family.Status, now time.Time) bool {
	if driver := status.Consensus; driver != nil {
		return heardLately(driver.Forkchoice, now) && driver.Problem == ""
	}
	return status.Source.Reached
}

// heardLately reports whether a time, in Unix seconds, was not long ago.
func heardLately(at int64, now time.Time) bool { return now.Sub(time.Unix(at, 0)) <= oldHead }

// whyUnreached says why no source is reachable.
func whyUnreached(status *family.Status, now time.Time) string {
	if driver := status.Consensus; driver != nil && heardLately(driver.Forkchoice, now) {
		client := "consensus client"
		if status.LightClient != nil {
			client = "light client"
		}
		return fmt.Sprintf("the head of its %s cannot be followed: %s", client, driver.Problem)
	}
	if light := status.LightClient; light != nil {
		return "its light client has verified no newer head: " + cmp.Or(light.Problem, "the beacon nodes have none")
	}
	if driver := status.Consensus; driver != nil {
		if heardLately(driver.Payload, now) {
			return "its consensus client sends blocks but names no head"
		}
		return "its consensus client is silent"
	}
	why := status.Source.Problem
	for _, node := range status.Source.Upstreams {
		if node.Why != "" {
			why = node.Name + ": " + node.Why
			break
		}
	}
	return "no upstream is usable: " + cmp.Or(why, "none has answered yet")
}
