package execute

import (
	"iter"

	"ashlar/evm"
)

// recordedKeys are accounts or slots that the steps of a block have touched, with the values that they had after the steps that
// changed them.
type recordedKeys[K, V comparable] struct {
	index   map[K]int // of keys
	keys    []recordedKey[K, V]
	touched []int             // indexes of those that the current step has touched
	steps   []recordedStep[V] // of all keys, ascending
}

type recordedKey[K, V comparable] struct {
	at          K
	first, last V     // before the block, and after the last step that has ended
	touched     touch // by the current step
	index       int
	steps       int // that have changed it
}

type recordedStep[V any] struct {
	key int // index
	evm.Step[V]
}

// touch is how the current step has touched a key.
type touch byte

const (
	untouched   touch = iota
	touched           // the value of a slot, or nonce or balance of an account
	touchedCode       // of an account, also its code and its storage as a whole
)

func newRecordedKeys[K, V comparable]() recordedKeys[K, V] {
	return recordedKeys[K, V]{index: make(map[K]int)}
}

// touch notes that the current step touches a key, which is returned. The caller sets the first and the last value of a
// new one. The key is valid until the next call.
func (r *recordedKeys[K, V]) touch(at K, as touch) (k *recordedKey[K, V], isNew bool) {
	i, known := r.index[at]
	if !known {
		i = len(r.keys)
		r.index[at] = i
		r.keys = append(r.keys, recordedKey[K, V]{at: at, index: i})
	}
	k = &r.keys[i]
	if k.touched == untouched {
		r.touched = append(r.touched, i)
	}
	k.touched = max(k.touched, as)
	return k, !known
}

// takeTouched yields the keys that the current step has touched, which ends.
func (r *recordedKeys[K, V]) takeTouched() iter.Seq2[*recordedKey[K, V], touch] {
	return func(yield func(*recordedKey[K, V], touch) bool) {
		for _, i := range r.touched {
			k := &r.keys[i]
			as := k.touched
			k.touched = untouched
			if !yield(k, as) {
				break
			}
		}
		r.touched = r.touched[:0]
	}
}

// end notes the value of a key after a step.
func (r *recordedKeys[K, V]) end(k *recordedKey[K, V], step int, value V) {
	if value == k.last {
		return
	}
	k.last = value
	k.steps++
	r.steps = append(r.steps, recordedStep[V]{k.index, evm.Step[V]{Step: step, Value: value}})
}

// changed yields the keys that steps have changed, with their values, which the caller may keep.
func (r *recordedKeys[K, V]) changed() iter.Seq2[*recordedKey[K, V], []evm.Step[V]] {
	values, next := make([]evm.Step[V], len(r.steps)), make([]int, len(r.keys)) // where the next value of a key goes
	end := 0
	for i := range r.keys {
		next[i] = end
		end += r.keys[i].steps
	}
	for i := range r.steps {
		s := &r.steps[i]
		values[next[s.key]] = s.Step
		next[s.key]++
	}
	return func(yield func(*recordedKey[K, V], []evm.Step[V]) bool) {
		for i := range r.keys {
			k, end := &r.keys[i], next[i]
			if k.steps > 0 && !yield(k, values[end-k.steps:end:end]) {
				return
			}
		}
	}
}
