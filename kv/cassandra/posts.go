package cassandra

import (
	"context"
	"time"
)

// Posts are small values that processes leave for each other. They are no part of the store:
// they are not copied, and end by themselves. The later of two posts with the same name
// stays, by the clock of the store that posted it. That clock does not go back when the
// machine's does, but those of two processes differ, so a name should belong to one process.

// postPatience bounds a post: a later one replaces it.
const postPatience = time.Second

// Post sets the value with a name, and removes it after a time.
func (s *Store) Post(ctx context.Context, name string, value []byte, keep time.Duration) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	post := s.cluster.session.Query("INSERT INTO "+tablePosts+" (store, name, value) VALUES (?, ?, ?) USING TTL ?", s.id, name, copied(value), int(keep.Seconds()))
	return s.cluster.exec(ctx, s.cluster.config.postPatience, post.WithTimestamp(s.clock.next()))
}

// Posts returns all values.
func (s *Store) Posts(ctx context.Context) (all map[string][]byte, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	err = s.cluster.retry(ctx, s.cluster.config.postPatience, func(ctx context.Context) error {
		all = map[string][]byte{}
		rows := s.query("SELECT name, value FROM "+tablePosts+" WHERE store = ?", s.id).IterContext(ctx)
		var name string
		for value := []byte(nil); rows.Scan(&name, &value); value = nil {
			all[name] = value
		}
		return rows.Close()
	})
	return all, err
}
