package backup

import (
	"context"
	"errors"
	"time"
)

// Prune removes all backups but the newest, of which it keeps the given number, and the
// contents that no remaining backup has, finished or not. No other backup to the target may be under way.
func Prune(ctx context.Context, t Target, keep int) (removed int, err error) {
	if keep < 1 {
		return 0, errors.New("at least one backup must be kept")
	}
	names, err := Names(ctx, t)
	if err != nil {
		return 0, err
	}
	old := names[:max(0, len(names)-keep)]
	used := make(map[string]bool)
	for _, name := range names[len(old):] {
		m, err := Load(ctx, t, name)
		if err != nil {
			return 0, err // its contents are not known, so none can be removed
		}
		for _, s := range m.Stores {
			for _, f := range s.Files {
				used[object(f.SHA256)] = true
			}
		}
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
