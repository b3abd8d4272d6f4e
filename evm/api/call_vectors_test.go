package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/query"
	"ashlar/evm/source/file"
	"ashlar/internal/jsondiff"
	"ashlar/internal/vectors"
	"ashlar/jsonrpc"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// recordedServer answers about the chain that the conversations of
// ethereum/execution-apis were recorded on.
func recordedServer(t testing.TB, folder string) *jsonrpc.Server {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	first, _, err := genesis.Load(filepath.Join(folder, "genesis.json"))
	must(err)
	store, err := pebble.Open(pebble.Options{Path: "chain", FS: vfs.NewMem()})
	must(err)
	t.Cleanup(func() { must(store.Close()) })
	history, err := archive.Create(t.Context(), store, first)
	must(err)
	executor, err := execute.New(first.Config)
	must(err)
	importer, err := ingest.New(t.Context(), history, executor, first)
	must(err)
	blocks, err := file.Open(filepath.Join(folder, "chain.rlp"))
	must(err)
	defer blocks.Close()
	must(importer.Import(t.Context(), blocks))
	api := api.New(query.NewChain(history, nil, executor), api.Config{})
	return jsonrpc.NewServer(methodsOf(api).Handlers(), jsonrpc.Config{})
}

// TestRecordedCalls asks what was recorded of the methods that run something,
// and expects the same answers, word for word.
func TestRecordedCalls(t *testing.T) {
	folder := vectors.Path(t, "execution-apis")
	server := recordedServer(t, folder)
	for _, method := range []string{"eth_call", "eth_estimateGas", "eth_createAccessList"} {
		files, err := filepath.Glob(filepath.Join(folder, method, "*.io"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no conversations about %s: %v", method, err)
		}
		for _, file := range files {
			t.Run(method+"/"+strings.TrimSuffix(filepath.Base(file), ".io"), func(t *testing.T) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				replay(t, server, string(text))
			})
		}
	}
}

func replay(t *testing.T, server *jsonrpc.Server, conversation string) {
	var request string
	for line := range strings.Lines(conversation) {
		if sent, ok := strings.CutPrefix(line, ">> "); ok {
			request = sent
		}
		recorded, ok := strings.CutPrefix(line, "<< ")
		if !ok {
			continue
		}
		want, err := jsondiff.Decode([]byte(recorded))
		if err != nil {
			t.Fatal(err)
		}
		answer := server.Answer(t.Context(), []byte(request), nil)
		got, err := jsondiff.Decode(answer)
		if err != nil {
			t.Fatalf("%v in %s", err, answer)
		}
		for _, difference := range jsondiff.Values(want, got) {
			t.Errorf("%s\nto %s", difference, request)
		}
	}
}
