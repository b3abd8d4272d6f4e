package feeder

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/starknet"
	"ashlar/strictjson"
)

// answer returns a gateway's response for a block of one transaction with one event. The hash of
// block n is 100+n.
func answer(number uint64) string {
	return fmt.Sprintf(`{"block_hash":"%#x","parent_block_hash":"%#x","block_number":%d,"state_root":"%064x",`+
		`"timestamp":%d,"status":"ACCEPTED_ON_L1","gas_price":"0x5","unheard_of":[{"a":1}],`+
		`"transactions":[{"transaction_hash":"0x1%d","type":"INVOKE_FUNCTION","version":"0x0","signature":["0x7"],"calldata":["0x1"]}],`+
		`"transaction_receipts":[{"transaction_index":0,"transaction_hash":"0x1%d","l2_to_l1_messages":[],`+
		`"events":[{"from_address":"0xaB","keys":["0x1","0x2"],"data":[]}]}]}`,
		100+number, 99+number, number, 7, 1000+number, number, number)
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// folder creates a folder with files, given by their paths in it.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// readAll reads the blocks of files up to an error or the end.
func readAll(t testing.TB, paths ...string) (blocks []*starknet.Block, err error) {
	t.Helper()
	files, err := Open(t.Context(), paths...)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	for {
		block, err := files.Next()
		if err == io.EOF {
			if read, total := files.Progress(); read != total {
				t.Errorf("at the end %d bytes of %d have been read", read, total)
			}
			return blocks, nil
		}
		if err != nil {
			if _, again := files.Next(); again != err {
				t.Errorf("after the error %v: %v", err, again)
			}
			return blocks, err
		}
		blocks = append(blocks, block)
	}
}

func numbers(blocks []*starknet.Block) (numbers []uint64) {
	for _, b := range blocks {
		numbers = append(numbers, b.Number)
	}
	return numbers
}

func TestBlocksComeInTheOrderOfTheirNumbers(t *testing.T) {
	wrapped := `{"state_update":{"old_root":"0x1"},"block":` + answer(5) + `}`
	for _, test := range []struct {
		name  string
		files map[string]string
	}{
		{"file names in another order", map[string]string{"a": answer(6), "b": answer(3), "c": answer(5), "d.txt": answer(4)}},
		{"subfolders and hidden files", map[string]string{"0/b.json": answer(4), "0/a.json": answer(6), "1/3": answer(3), "5": answer(5), ".index": "no block", ".git/x": "no block"}},
		{"several blocks per file", map[string]string{"a": answer(5) + "\n" + answer(6) + "\n", "z": answer(3) + answer(4)}},
		{"gzip", map[string]string{"a": zipped(t, answer(5)+answer(6)), "b": zipped(t, answer(4)), "c": answer(3)}},
		{"with the state update", map[string]string{"5": wrapped, "rest": answer(3) + answer(4), "last": answer(6)}},
	} {
		blocks, err := readAll(t, folder(t, test.files))
		if err != nil || !slices.Equal(numbers(blocks), []uint64{3, 4, 5, 6}) {
			t.Errorf("%s: read blocks %d, %v, expected 3 to 6", test.name, numbers(blocks), err)
		}
	}
	root := folder(t, map[string]string{"a": answer(4), "b": answer(3), "c/x": answer(5)})
	blocks, err := readAll(t, filepath.Join(root, "a"), filepath.Join(root, "c"), filepath.Join(root, "b"))
	if err != nil || !slices.Equal(numbers(blocks), []uint64{3, 4, 5}) {
		t.Errorf("files beside a folder: read blocks %d, %v, expected 3 to 5", numbers(blocks), err)
	}
}

func TestBlockIsReadWhole(t *testing.T) {
	blocks, err := readAll(t, folder(t, map[string]string{"7": answer(7)}))
	if err != nil {
		t.Fatal(err)
	}
	b := blocks[0]
	felt := starknet.FeltOf
	if b.Hash != felt(107) || b.Parent != felt(106) || b.NewRoot != felt(7) || b.Timestamp != 1007 ||
		b.Status != starknet.AcceptedOnL1 || b.L1GasPrice.Wei != felt(5) || len(b.Transactions) != 1 {
		t.Errorf("the block was read as %+v", b)
	}
	transaction := b.Transactions[0]
	if transaction.Hash != felt(0x17) || transaction.Kind != starknet.Invoke || !slices.Equal(transaction.Signature, []starknet.Felt{felt(7)}) {
		t.Errorf("the transaction was read as %+v", transaction)
	}
	event := transaction.Receipt.Events[0]
	if event.From != felt(0xab) || !slices.Equal(event.Keys, []starknet.Felt{felt(1), felt(2)}) || len(event.Data) != 0 {
		t.Errorf("the event was read as %+v", event)
	}
}

// Each case changes a valid block, the only one or the second of two.
func TestErrorsNameThePlaces(t *testing.T) {
	for _, test := range []struct{ name, old, new, place, want string }{
		{"malformed hash", `"block_hash":"0x69"`, `"block_hash":"0x6g"`, "block_hash", "expected a hexadecimal digit"},
		{"hash not of the field", `"block_hash":"0x69"`, `"block_hash":"0x` + strings.Repeat("f", 64) + `"`, "block_hash", "not below the field's prime"},
		{"wrong link", `"parent_block_hash":"0x68"`, `"parent_block_hash":"0x67"`, "parent_block_hash", "found 0x67, expected 0x68, the hash of block 4 in "},
		{"gap", `"block_number":5`, `"block_number":8`, "block_number", "found 8, expected 5 after the last block of "},
		{"the block before again", `"block_number":5`, `"block_number":4`, "block_number", "found 4, expected 5"},
		{"number as text", `"block_number":5`, `"block_number":"5"`, "block_number", `found the string "5", expected an integer`},
		{"pending", "ACCEPTED_ON_L1", "PENDING", "status", `found "PENDING", expected ACCEPTED_ON_L2 or ACCEPTED_ON_L1`},
		{"no root", `"state_root"`, `"other_root"`, "state_root", "missing"},
		{"malformed root", `"state_root":"000`, `"state_root":"00x`, "state_root", "expected a hexadecimal digit"},
		{"malformed key", `"keys":["0x1","0x2"]`, `"keys":["0x1","2"]`, "transaction_receipts[0].events[0].keys[1]", "missing prefix 0x"},
		{"event without data", `,"data":[]`, ``, "transaction_receipts[0].events[0].data", "missing"},
		{"receipt of another transaction", `"transaction_index":0,"transaction_hash":"0x15"`, `"transaction_index":0,"transaction_hash":"0x16"`,
			"transaction_receipts[0].transaction_hash", "found 0x16, expected 0x15, the hash of transactions[0]"},
		{"receipt in another place", `"transaction_index":0`, `"transaction_index":1`, "transaction_receipts[0].transaction_index", "found 1, expected 0"},
		{"more transactions than receipts", `"transactions":[`, `"transactions":[{"transaction_hash":"0x1","type":"DEPLOY","version":"0x0"},`,
			"transaction_receipts", "found 1, expected one for each of 2 transactions"},
		{"transaction of another kind", "INVOKE_FUNCTION", "INVENTED", "transactions[0].type", `found "INVENTED", expected INVOKE`},
		{"given twice", `"timestamp":1005`, `"timestamp":1005,"timestamp":1005`, "timestamp", "given twice"},
		{"cut short", `,"transaction_receipts":[`, "\x00", "transactions", "not JSON"},
		{"long version", `"gas_price"`, `"starknet_version":"` + strings.Repeat("1", 32) + `","gas_price"`, "starknet_version", "of 32 bytes, expected a version of at most 31"},
	} {
		good := answer(5)
		bad := strings.Replace(good, test.old, test.new, 1)
		if bad == good {
			t.Fatalf("%s: the text to change was not found", test.name)
		}
		path := filepath.Join(folder(t, map[string]string{"f": answer(4) + bad}), "f")
		blocks, err := readAll(t, path)
		var file *Error
		var wrong *strictjson.Error
		if !errors.As(err, &file) || !errors.As(err, &wrong) {
			t.Errorf("%s: the error is %v, expected one with a place", test.name, err)
			continue
		}
		if len(blocks) != 1 || file.Path != path || file.Blocks != 1 {
			t.Errorf("%s: %d blocks, then %v: expected the first block, and the file's name", test.name, len(blocks), err)
		}
		if test.name != "cut short" && wrong.Place != test.place || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %q, expected %q at %s", test.name, err, test.want, test.place)
		}
	}
	_, err := readAll(t, folder(t, map[string]string{"f": `{"block":` + strings.Replace(answer(5), `"0x2"`, `"0x"`, 1) + `}`}))
	var wrong *strictjson.Error
	if !errors.As(err, &wrong) || wrong.Place != "block.transaction_receipts[0].events[0].keys[1]" {
		t.Errorf("in a block beside the state's differences: %v, expected an error in block.transaction_receipts[0].events[0].keys[1]", err)
	}
}

func TestInvalidFiles(t *testing.T) {
	cut := zipped(t, answer(4))
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no files", nil, "no files found"},
		{"empty file", map[string]string{"a": answer(1), "b": " \n"}, "the file is empty, expected a block"},
		{"no block", map[string]string{"a": `{"blocks":[]}`}, "block_number, up to byte 13: missing"},
		{"no JSON", map[string]string{"a": "hello"}, "not JSON"},
		{"an error of the gateway", map[string]string{"a": `{"code":"StarknetErrorCode.BLOCK_NOT_FOUND","message":"x"}`}, "block_number, up to byte 58: missing"},
		{"a block within a block", map[string]string{"a": `{"block":{"block":` + answer(4) + `}}`}, "block_number, up to byte"},
		{"nested without end", map[string]string{"a": strings.Repeat(`{"block":`, 1<<16)}, "exceeded max depth"},
		{"a block in two files", map[string]string{"a": answer(4), "b": answer(4)}, "block 4 is also in "},
		{"a gap between files", map[string]string{"a": answer(4), "b": answer(6)}, "found 6, expected 5 after the last block"},
		{"files that overlap", map[string]string{"a": answer(4) + answer(5), "b": answer(5) + answer(6)}, "found 5, expected 6"},
		{"gzip cut short", map[string]string{"a": cut[:len(cut)-9]}, "cut short"},
		{"gzip with a wrong checksum", map[string]string{"a": cut[:len(cut)-8] + "aaaaaaaa"}, "gzip: invalid checksum"},
		{"gzip's first bytes alone", map[string]string{"a": "\x1f\x8b"}, "EOF"},
	} {
		_, err := readAll(t, folder(t, test.files))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, expected %q", test.name, err, test.want)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, folder(t, map[string]string{"a": answer(1)})); !errors.Is(err, context.Canceled) {
		t.Errorf("opening continues when it is cancelled: %v", err)
	}
}

func TestPathOfABlock(t *testing.T) {
	root := folder(t, map[string]string{"a": answer(5) + answer(6), "b": answer(3) + answer(4), "c": answer(7)})
	files, err := Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for number, name := range map[uint64]string{3: "b", 4: "b", 5: "a", 6: "a", 7: "c"} {
		if path := files.Path(number); path != filepath.Join(root, name) {
			t.Errorf("block %d is in %s, expected %s", number, path, name)
		}
	}
}

func TestNothingIsReadAfterClose(t *testing.T) {
	files, err := Open(t.Context(), folder(t, map[string]string{"a": answer(1) + answer(2)}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Next(); err != nil {
		t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Next(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v, expected fs.ErrClosed", err)
	}
}
