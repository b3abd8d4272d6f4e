package usage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/kv"
)

var (
	// flushes holds flushed counts of hours that are not yet summed.
	//
	//	partition  node (2 bytes), hour (4 bytes)
	//	sort       Unix milliseconds of the flush
	// value      form (1 byte), n (uvarint), n times a key's ID (8 bytes) and its calls
	flushes = &kv.Table{ID: 0x44, Name: "usage_flushes", Kind: kv.List, Transient: true}
	// hours holds the sums of an hour for each key, and for all keys under the zero ID.
	//
	//	partition  ID of the key (8 bytes), period (4 bytes)
	//	sort       hour << 40 | node << 24 | milliseconds of the first flush within the hour
	//	value      form (1 byte), last use (uvarint, Unix seconds), calls
	hours = &kv.Table{ID: 0x45, Name: "usage_hours", Kind: kv.List, Transient: true}
)

// Tables lists the tables of usage, for maintenance.
func Tables() []*kv.Table { return []*kv.Table{flushes, hours} }

const (
	formUsage = 0x02
	// formPlain is the form of older rows, without bytes, refusals and codes.
	formPlain = 0x01

	// periodHours is how many hours share a partition, which is dropped as a whole.
	periodHours = 32 * 24
)

// hour is hours since 1970, UTC.
type hour uint32

func hourOf(t time.Time) hour { return hour(max(0, t.Unix()) / 3600) }

func (h hour) period() uint32 { return uint32(h) / periodHours }

func flushPartition(by share) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, by.node), uint32(by.hour))
}

// shareOf is the reverse of flushPartition.
func shareOf(partition []byte) (share, error) {
	if len(partition) != 6 {
		return share{}, fmt.Errorf("usage: table %s: a partition of %d bytes, expected 6", flushes.Name, len(partition))
	}
	return share{binary.BigEndian.Uint16(partition), hour(binary.BigEndian.Uint32(partition[2:]))}, nil
}

func hourPartition(key account.KeyID, period uint32) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(key[:]), period)
}

// hourSort returns the sort key of a row of hours. first is the time of the first flush in
// the sum, in Unix milliseconds.
func hourSort(by share, first uint64) uint64 {
	begin := uint64(by.hour) * 3_600_000
	return uint64(by.hour)<<40 | uint64(by.node)<<24 | min(max(first, begin)-begin, 1<<24-1)
}

func hourOfSort(sort uint64) hour { return hour(sort >> 40) }

func nodeOfSort(sort uint64) uint16 { return uint16(sort >> 24) }

// firstOfSort returns the time of the first flush in a row of hours, in Unix milliseconds.
func firstOfSort(sort uint64) uint64 { return uint64(hourOfSort(sort))*3_600_000 + sort&(1<<24-1) }

// calls are counts by series.
type calls map[series]Counts

func (c calls) add(more calls) {
	for s, n := range more {
		sum := c[s]
		sum.Add(n)
		c[s] = sum
	}
}

func compareSeries(a, b series) int {
	return cmp.Or(cmp.Compare(a.network, b.network), cmp.Compare(a.method, b.method))
}

func appendCalls(out []byte, c calls) []byte {
	out = binary.AppendUvarint(out, uint64(len(c)))
	for _, s := range slices.SortedFunc(maps.Keys(c), compareSeries) {
		n := c[s]
		for _, text := range []string{s.network, s.method} {
			out = append(binary.AppendUvarint(out, uint64(len(text))), text...)
		}
		out = binary.AppendUvarint(out, n.Errors)
		out = binary.AppendUvarint(out, n.Credits)
		out = binary.AppendUvarint(out, uint64(n.Time.Microseconds()))
		out = binary.AppendUvarint(out, n.Bytes)
		for _, count := range n.Latency {
			out = binary.AppendUvarint(out, count)
		}
		out = binary.AppendUvarint(out, uint64(len(n.Refused)))
		for _, cause := range slices.Sorted(maps.Keys(n.Refused)) {
			out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(cause)), n.Refused[cause])
		}
		out = binary.AppendUvarint(out, uint64(len(n.Codes)))
		for _, code := range slices.Sorted(maps.Keys(n.Codes)) {
			out = binary.AppendUvarint(binary.AppendVarint(out, int64(code)), n.Codes[code])
		}
	}
	return out
}

// reader decodes a value. It keeps the first error.
type reader struct {
	rest  []byte
	plain bool // the row has formPlain
	err   error
}

var errShort = errors.New("unexpected end of the row")

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail(errShort)
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) varint() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.fail(errShort)
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail(errShort)
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) fail(err error) {
	r.err, r.rest = cmp.Or(r.err, err), nil
}

// begin checks the form of a value.
func (r *reader) begin() {
	form := r.bytes(1)
	if r.err != nil {
		return
	}
	switch form[0] {
	case formUsage:
	case formPlain:
		r.plain = true
	default:
		r.fail(fmt.Errorf("form %#x, expected %#x or %#x", form[0], formUsage, formPlain))
	}
}

// end returns the first error, or one if data is left.
func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		return fmt.Errorf("%d bytes follow its end", len(r.rest))
	}
	return r.err
}

func (r *reader) calls(add func(series, Counts)) {
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		var s series
		s.network = string(r.bytes(r.uvarint()))
		s.method = string(r.bytes(r.uvarint()))
		c := Counts{Errors: r.uvarint(), Credits: r.uvarint()}
		micros := r.uvarint()
		if micros > math.MaxInt64/uint64(time.Microsecond) {
			r.fail(fmt.Errorf("total call time of %d µs is out of range", micros))
		}
		c.Time = time.Duration(micros) * time.Microsecond
		if !r.plain {
			c.Bytes = r.uvarint()
		}
		for i := range c.Latency {
			c.Latency[i] = r.uvarint()
			c.Requests += c.Latency[i]
		}
		if !r.plain {
			r.failures(&c)
		}
		if r.err == nil {
			add(s, c)
		}
	}
}

// failures decodes refusals and codes.
func (r *reader) failures(c *Counts) {
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		cause, count := r.uvarint(), r.uvarint()
		if cause > math.MaxUint8 {
			r.fail(fmt.Errorf("cause %d of a refusal is out of range", cause))
			return
		}
		c.refuse(Cause(cause), count)
	}
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		code, count := r.varint(), r.uvarint()
		c.fail(int(code), count)
	}
}

// appendFlush appends the value of a row of flushes.
func appendFlush(out []byte, counted map[account.KeyID]calls) []byte {
	out = binary.AppendUvarint(append(out, formUsage), uint64(len(counted)))
	byID := func(a, b account.KeyID) int { return slices.Compare(a[:], b[:]) }
	for _, id := range slices.SortedFunc(maps.Keys(counted), byID) {
		out = appendCalls(append(out, id[:]...), counted[id])
	}
	return out
}

// decodeFlush is the reverse of appendFlush.
func decodeFlush(value []byte) (map[account.KeyID]calls, error) {
	counted := make(map[account.KeyID]calls)
	r := reader{rest: value}
	r.begin()
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		var id account.KeyID
		copy(id[:], r.bytes(uint64(len(id))))
		of := make(calls)
		r.calls(func(s series, c Counts) { of[s] = c })
		counted[id] = of
	}
	return counted, r.end()
}

// appendHour appends the value of a row of hours.
func appendHour(out []byte, last time.Time, c calls) []byte {
	return appendCalls(binary.AppendUvarint(append(out, formUsage), uint64(max(0, last.Unix()))), c)
}

// decodeHour is the reverse of appendHour; add is called for each series.
func decodeHour(value []byte, add func(series, Counts)) (last time.Time, err error) {
	r := reader{rest: value}
	r.begin()
	seconds := r.uvarint()
	if seconds > math.MaxInt32*1000 {
		r.fail(fmt.Errorf("last use %d seconds after 1970 is out of range", seconds))
	}
	r.calls(add)
	return time.Unix(int64(seconds), 0).UTC(), r.end()
}
