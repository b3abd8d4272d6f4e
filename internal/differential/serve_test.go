package differential

import (
	"path/filepath"
	"testing"

	"ashlar/internal/node"
	"ashlar/internal/sample"
	"ashlar/internal/vectors"
)

func findGeth(t *testing.T) string {
	t.Helper()
	bin, err := node.FindGeth()
	if err != nil {
		vectors.Missing(t, err.Error())
	}
	return bin
}

// importIntoGeth makes a geth with the genesis and the blocks of files.
func importIntoGeth(t *testing.T, scheme node.Scheme, full bool, genesis string, files ...string) node.Geth {
	t.Helper()
	g := node.Geth{Bin: findGeth(t), Data: t.TempDir(), Scheme: scheme, Full: full}
	if err := g.Init(t.Context(), genesis); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		p, err := g.Import(t.Context(), file)
		awaitImport(t, p, err)
	}
	return g
}

// serveGeth serves a chain with geth's archive until the test ends.
func serveGeth(t *testing.T, genesis, file string) *node.Client {
	t.Helper()
	p, client, err := importIntoGeth(t, node.HashScheme, false, genesis, file).Serve(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return client
}

// gethChain generates a chain, and serves it with geth's archive until the test ends.
func gethChain(t *testing.T, blocks, transactions int) (genesis, file string, geth *node.Client, chain *sample.Chain) {
	t.Helper()
	folder := generateChain(t, blocks, transactions)
	genesis, file = filepath.Join(folder, "genesis.json"), filepath.Join(folder, "chain.rlp")
	geth = serveGeth(t, genesis, file)
	return genesis, file, geth, learn(t, genesis, file, geth)
}

// newAshlar is an Ashlar without data, with a file of configuration or none ("").
func newAshlar(t *testing.T, config string) node.Ashlar {
	t.Helper()
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return node.Ashlar{Bin: bin, Data: t.TempDir(), Network: "test", Config: config}
}

// serveAshlar executes a whole chain, and serves it until the test ends.
func serveAshlar(t *testing.T, genesis, file string) (node.Ashlar, *node.Client) {
	t.Helper()
	a := newAshlar(t, callGasConfig(t))
	p, err := a.Import(t.Context(), genesis, file)
	awaitImport(t, p, err)
	p, client := serve(t, a)
	t.Cleanup(p.Kill)
	return a, client
}

func serve(t *testing.T, a node.Ashlar) (*node.Process, *node.Client) {
	t.Helper()
	p, client, err := a.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p, client
}

// learn returns the chain of a file, with what a server that has it knows.
func learn(t *testing.T, genesis, file string, from *node.Client) *sample.Chain {
	t.Helper()
	chain, err := sample.Read(genesis, file)
	if err == nil {
		err = chain.Learn(t.Context(), from)
	}
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

func awaitImport(t *testing.T, p *node.Process, err error) {
	t.Helper()
	if err == nil {
		_, err = p.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
}
