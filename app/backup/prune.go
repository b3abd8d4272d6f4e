package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Prune removes old backups, and the contents that no remaining backup has, finished or not. It keeps the given number of the
// newest. An older one stays until as many newer ones can take its place, unless it lacks a store. No other backup to the target
// may be under way.
func Prune(ctx context.Context, t Target, keep int) (removed int, err error) {
	if keep < 1 {
		return 0, errors.New("at least one backup must be kept")
	}
	names, err := Names(ctx, t)
	if err != nil {
		return 0, err
	}
	old, used, err := outdated(ctx, t, names, keep)
	if err != nil {
		return 0, err
	}
	for _, name := range old {
		if err := t.Remove(ctx, backupsFolder+name+suffix); err != nil {
			return removed, err
		}
		removed++
	}
	var unused []string
	err = t.List(ctx, objectsFolder, func(name string, _ int64) {
		if !used[name] {
			unused = append(unused, name)
		}
	})
	for _, name := range unused {
		if err == nil {
			err = t.Remove(ctx, name)
		}
	}
	if b, ok := t.(*bucket); ok && err == nil {
		err = b.removeUnfinished(ctx, time.Now().Add(-unfinishedFor))
	}
	return removed, err
}

// outdated returns those of the named backups that are not kept, and the contents of the others.
func outdated(ctx context.Context, t Target, names []string, keep int) (old []string, used map[string]bool, err error) {
	used = make(map[string]bool)
	var complete []scope
	whole := 0
	for i, name := range slices.Backward(names) {
		if whole == keep { // they can take the place of all older ones
			return append(old, names[:i+1]...), used, nil
		}
		m, err := Load(ctx, t, name)
		if errors.Is(err, ErrDamaged) {
			err = fmt.Errorf("%w; no old backups are removed, because its contents are not known: remove %s from %s, or make backups until %d newer ones are whole",
				err, backupsFolder+name+suffix, t, keep)
		}
		if err != nil {
			return nil, nil, err
		}
		has := scopeOf(m)
		if newer := len(names) - 1 - i; newer >= keep && (len(m.Lacks) > 0 || has.replacedBy(complete) >= keep) {
			old = append(old, name)
			continue
		}
		if len(m.Lacks) == 0 {
			complete = append(complete, has)
			if has.whole {
				whole++
			}
		}
		for _, s := range m.Stores {
			for _, f := range s.Files {
				used[object(f.SHA256)] = true
			}
		}
	}
	return old, used, nil
}

// scope is what a backup covers.
type scope struct {
	whole  bool // all that there were
	stores []string
}

func scopeOf(m *Manifest) scope {
	c := scope{whole: !m.Partial}
	for _, s := range m.Stores {
		c.stores = append(c.stores, s.Name)
	}
	return c
}

// replacedBy returns how many newer backups, which lack nothing, can take the place of this one: a whole one, since stores that
// it does not have were removed before, and one with all of these stores.
func (c scope) replacedBy(newer []scope) (n int) {
	for _, other := range newer {
		if other.whole || !slices.ContainsFunc(c.stores, func(name string) bool { return !slices.Contains(other.stores, name) }) {
			n++
		}
	}
	return n
}
