package blockhash

import (
	"math/big"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/stark-curve/fp"
	pedersenhash "github.com/consensys/gnark-crypto/ecc/stark-curve/pedersen-hash"
)

func number(t *testing.T, text string) (e fp.Element) {
	t.Helper()
	if _, err := e.SetString(text); err != nil {
		t.Fatal(err)
	}
	return e
}

func numbers(values ...uint64) []fp.Element {
	elements := make([]fp.Element, len(values))
	for i, v := range values {
		elements[i].SetUint64(v)
	}
	return elements
}

// The library's own, slower implementation is the reference.
func TestPedersenIsThatOfTheLibrary(t *testing.T) {
	p := newPedersen()
	largest := fp.NewElement(0)
	largest.Sub(&largest, new(fp.Element).SetOne())
	var high fp.Element // only the bits that multiply the second point of an operand
	high.SetBigInt(new(big.Int).Lsh(big.NewInt(7), 248))
	elements := append(numbers(0, 1, 2, 255, 256, 1<<63), largest, high)
	for range 20 {
		var random fp.Element
		elements = append(elements, *random.MustSetRandom())
	}
	for i := range elements {
		for j := range elements {
			a, b := &elements[i], &elements[j]
			if got, want := p.pair(a, b), pedersenhash.Pedersen(a, b); got != want {
				t.Fatalf("hash of %s and %s is %s, expected %s", a, b, got.Text(16), want.Text(16))
			}
		}
	}
	for length := range elements {
		var pointers []*fp.Element
		for i := range length {
			pointers = append(pointers, &elements[i])
		}
		if got, want := p.many(elements[:length]...), pedersenhash.PedersenArray(pointers...); got != want {
			t.Fatalf("hash of %d elements is %s, expected %s", length, got.Text(16), want.Text(16))
		}
	}
}

// The expected values are published test vectors of Poseidon over Starknet's field.
func TestPoseidonVectors(t *testing.T) {
	p := newPoseidon()
	one, two := fp.NewElement(1), fp.NewElement(2)
	for _, test := range []struct {
		name string
		got  fp.Element
		want string
	}{
		{"1 and 2", p.pair(&one, &two), "0x5d44a3decb2b2e0cc71071f7b802f45dd792d064f0fc7316c46514f70f9891a"},
		{"nothing", p.many(), "0x2272be0f580fd156823304800919530eaa97430e972d7213ee13f4fbf7a5dbc"},
		{"an odd number", p.many(numbers(0, 1, 2)...), "0x7a01142da8aecae3782ba66fc3285fd02fcd2c55aa868fe50fd95c089068d16"},
		{"an even number", p.many(numbers(0, 1, 2, 3)...), "0x7b8f30ac298ea12d170c0873f1fa631a18c00756c6e7d1fd273b9a239d0d413"},
	} {
		if want := number(t, test.want); test.got != want {
			t.Errorf("%s: the hash is 0x%s, expected %s", test.name, test.got.Text(16), test.want)
		}
	}
}

// bits is a subtree by definition: the hash of its two halves, or an edge to the only one that is
// not empty.
type bits struct {
	hash   fp.Element // without the edge
	length uint64     // of the edge above, whose path is 0
}

// naiveRoot computes the root of a tree level by level, without using the positions of its leaves.
func naiveRoot(h hash, leaves []fp.Element, height int) fp.Element {
	level := make([]*bits, 1<<height)
	for i := range leaves {
		level[i] = &bits{hash: leaves[i]}
	}
	for len(level) > 1 {
		above := make([]*bits, len(level)/2)
		for i := range above {
			switch left, right := level[2*i], level[2*i+1]; {
			case left != nil && right != nil:
				l, r := left.sealed(h), right.sealed(h)
				above[i] = &bits{hash: h.pair(&l, &r)}
			case left != nil:
				above[i] = &bits{left.hash, left.length + 1}
			}
		}
		level = above
	}
	if level[0] == nil {
		return fp.Element{}
	}
	return level[0].sealed(h)
}

func (b *bits) sealed(h hash) fp.Element {
	if b.length == 0 {
		return b.hash
	}
	length, path := fp.NewElement(b.length), fp.Element{}
	hash := h.pair(&b.hash, &path)
	return *hash.Add(&hash, &length)
}

func TestTreeRootIsThatOfANaiveTree(t *testing.T) {
	h := newPoseidon()
	const height = 6
	var leaves []fp.Element
	for length := range 1<<height + 1 {
		if got, want := subtreeRoot(h, leaves, height), naiveRoot(h, leaves, height); got != want {
			t.Errorf("the root over %d leaves is %s, expected %s", length, got.Text(16), want.Text(16))
		}
		leaves = append(leaves, fp.NewElement(uint64(1000+length)))
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	ordered := []string{"", "0.9.1", "0.10.3", "0.11.1", "0.13.1", "0.13.1.1", "0.13.2", "0.13.10", "0.14.0", "1.0.0"}
	for i, text := range ordered {
		v, err := parseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		for j, other := range ordered {
			w, err := parseVersion(other)
			if err != nil {
				t.Fatal(err)
			}
			if v.before(w) != (i < j) {
				t.Errorf("%q before %q: %v", text, other, v.before(w))
			}
		}
	}
	for _, text := range []string{"0.13", "0.13.1.2.3", "0.13.x", "0..1", "v0.13.1", "0.13.65536", "-1.2.3"} {
		if v, err := parseVersion(text); err == nil {
			t.Errorf("%q was read as %v", text, v)
		}
	}
}

func BenchmarkPedersen(b *testing.B) {
	p := newPedersen()
	x, y := new(fp.Element).MustSetRandom(), *new(fp.Element).MustSetRandom()
	for b.Loop() {
		y = p.pair(x, &y)
	}
}

func BenchmarkPoseidon(b *testing.B) {
	p := newPoseidon()
	x, y := new(fp.Element).MustSetRandom(), *new(fp.Element).MustSetRandom()
	for b.Loop() {
		y = p.pair(x, &y)
	}
}

func BenchmarkNewPedersen(b *testing.B) {
	for b.Loop() {
		newPedersen()
	}
}
