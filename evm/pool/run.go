package pool

import "math/big"

// run sums up the executable transactions of a sender: those whose nonces follow the account's without a gap. It is kept
// up to date, so adding a transaction does not visit the others.
type run struct {
	length int
	blobs  int     // transactions with blobs
	cost   big.Int // of all
}

// add counts a transaction, times times.
func (r *run) add(w *entry, times int) {
	cost := w.tx.Cost()
	if times < 0 {
		cost.Neg(cost)
	}
	r.cost.Add(&r.cost, cost)
	r.length += times
	if w.hasBlobs() {
		r.blobs += times
	}
}

// next returns the nonce after the executable transactions.
func (s *sender) next() uint64 { return s.nonce + uint64(s.run.length) }

// isExecutable reports whether a transaction with a nonce is in the pool and can be executed.
func (s *sender) isExecutable(nonce uint64) bool { return nonce >= s.nonce && nonce < s.next() }

// extend counts what has become executable.
func (s *sender) extend() {
	for w := s.byNonce[s.next()]; w != nil; w = s.byNonce[s.next()] {
		s.run.add(w, 1)
	}
}

// insert adds a transaction, for whose nonce there is none.
func (s *sender) insert(w *entry) {
	s.byNonce[w.tx.Nonce()] = w
	if w.hasBlobs() {
		s.blobs++
	}
	s.extend()
}

// remove removes a transaction. Those after it are not executable any more.
func (s *sender) remove(w *entry) {
	nonce := w.tx.Nonce()
	for s.isExecutable(nonce) {
		s.run.add(s.byNonce[s.next()-1], -1)
	}
	delete(s.byNonce, nonce)
	if w.hasBlobs() {
		s.blobs--
	}
}

// executable returns the executable transactions in the order of their nonces.
func (s *sender) executable() []*entry {
	list := make([]*entry, s.run.length)
	for i := range list {
		list[i] = s.byNonce[s.nonce+uint64(i)]
	}
	return list
}
