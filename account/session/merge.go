package session

import (
	"bytes"
	"context"
	"reflect"

	"github.com/alexedwards/scs/v2"
)

// scs loads all values of a session when a request begins, and commits all when it ends. A request
// that takes long would so undo what others have changed meanwhile: forget that a passkey is asked
// for, or ask again for one that has answered. Therefore a commit changes only the values that the
// request has changed.

// loaded is what a request has loaded of its session.
type loaded struct {
	partition, data []byte
	ended           bool // it had ended when the request committed it
}

type loadedKey struct{}

// Track returns the context of a request whose commits change only what the request itself has changed.
func Track(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadedKey{}, new(loaded))
}

// track remembers what the request of ctx has loaded, if it is tracked.
func track(ctx context.Context, partition, data []byte) {
	if l, ok := ctx.Value(loadedKey{}).(*loaded); ok {
		*l = loaded{partition: partition, data: data}
	}
}

// trackEnd remembers that the session of a tracked request had ended when it was committed.
func trackEnd(ctx context.Context) {
	if l, ok := ctx.Value(loadedKey{}).(*loaded); ok {
		l.ended = true
	}
}

// EndedMeanwhile reports whether the session of the request of ctx has ended while it was served, or was
// replaced by one with another token. The cookie that scs sets is of no use then.
func EndedMeanwhile(ctx context.Context) bool {
	l, ok := ctx.Value(loadedKey{}).(*loaded)
	return ok && l.ended
}

// loadedBefore returns what the request of ctx has loaded of a session, nil if that is not known.
func loadedBefore(ctx context.Context, partition []byte) []byte {
	if l, ok := ctx.Value(loadedKey{}).(*loaded); ok && bytes.Equal(l.partition, partition) {
		return l.data
	}
	return nil
}

// covers reports whether r makes storing next unnecessary: the data is the same, and the
// expiry is extended by less than prolongTime.
func (r *revision) covers(next *revision) bool {
	moved := next.expires.Sub(r.expires)
	return string(r.data) == string(next.data) && moved >= 0 && moved < prolongTime
}

// merged returns newest with the changes from before to after; before is nil if it is not known. The
// result is newest itself if there are none: the same values have many encodings, because gob writes
// maps in any order.
func merged(before, after, newest []byte) []byte {
	if before == nil {
		before = newest
	}
	codec := scs.GobCodec{}
	oldEnd, old, oldErr := codec.Decode(before)
	end, values, err := codec.Decode(after)
	if oldErr != nil || err != nil {
		return after // they are not scs's
	}
	if end.Equal(oldEnd) && reflect.DeepEqual(values, old) {
		return newest
	}
	result := after
	if !bytes.Equal(before, newest) {
		nowEnd, now, err := codec.Decode(newest)
		if err != nil || now == nil {
			return after
		}
		for key, value := range values {
			if was, ok := old[key]; !ok || !reflect.DeepEqual(was, value) {
				now[key] = value
			}
		}
		for key := range old {
			if _, ok := values[key]; !ok {
				delete(now, key)
			}
		}
		if !end.Equal(oldEnd) {
			nowEnd = end
		}
		if result, err = codec.Encode(nowEnd, now); err != nil {
			return after
		}
	}
	return result
}
