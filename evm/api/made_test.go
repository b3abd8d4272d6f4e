package api_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"ashlar/internal/jsondiff"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// TestConversation holds the conversation in testdata/made.txt: after `-->` a
// request, after `<--` its result, or `error` with code and message.
func TestConversation(t *testing.T) {
	s := serveMade(t)
	text, err := os.ReadFile("testdata/made.txt")
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{
		"$logger", hexOf(logger), "$reverter", hexOf(reverter), "$five", hexOf(common.Hash{31: 5}),
		"$sender", hexOf(crypto.PubkeyToAddress(key.PublicKey)), "$tx2", s.blocks[2].Transactions()[0].Hash().Hex(),
	}
	for i, block := range s.blocks {
		names = append(names, fmt.Sprintf("$block%d", i), block.Hash().Hex())
	}
	lines := bufio.NewScanner(strings.NewReader(strings.NewReplacer(names...).Replace(string(text))))
	var request string
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if ask, ok := strings.CutPrefix(line, "--> {"); ok {
			request = `{"jsonrpc":"2.0",` + ask
		} else if want, ok := strings.CutPrefix(line, "<-- "); ok {
			got := string(s.Answer(t.Context(), []byte(request), nil))
			if wrong := disagree(want, got); wrong != "" {
				t.Errorf("made.txt:%d: %s\n%s", n, request, wrong)
			}
		} else if line != "" && !strings.HasPrefix(line, "//") {
			t.Fatalf("made.txt:%d: %q is no line of a conversation", n, line)
		}
	}
}

func hexOf[T interface{ Bytes() []byte }](value T) string { return fmt.Sprintf("%#x", value.Bytes()) }

// disagree says where an answer is not what is wanted; nothing where it is.
func disagree(want, got string) string {
	envelope := `{"jsonrpc":"2.0","id":1,"result":` + want + `}`
	if failure, ok := strings.CutPrefix(want, "error "); ok {
		code, message, _ := strings.Cut(failure, " ")
		envelope = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%s,"message":%q}}`, code, message)
	}
	a, err := jsondiff.Decode([]byte(envelope))
	if err != nil {
		return err.Error()
	}
	b, err := jsondiff.Decode([]byte(got))
	if err != nil {
		return err.Error()
	}
	var wrong []string
	for _, d := range jsondiff.Values(a, b) {
		wrong = append(wrong, " want against got: "+d.String())
	}
	return strings.Join(wrong, "\n")
}
