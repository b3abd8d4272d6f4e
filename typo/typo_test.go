package typo

import "testing"

func TestMeant(t *testing.T) {
	names := []string{"backup", "export", "import", "status", "eth_getBalance"}
	for unknown, want := range map[string]string{
		"improt": "import", "Status": "status", "backupp": "backup", "getBalance": "eth_getBalance", "eth_getbalance": "eth_getBalance",
		"restore": "", "": "", "b": "",
	} {
		if got := Meant(names, unknown); got != want {
			t.Errorf("%q: meant %q, expected %q", unknown, got, want)
		}
	}
}

func BenchmarkMeant(b *testing.B) {
	names := []string{"eth_getBlockByHash", "eth_getBlockByNumber", "eth_getTransactionByHash", "eth_getTransactionReceipt", "eth_call", "debug_traceTransaction"}
	for b.Loop() {
		if Meant(names, "eth_getTransactionRecipt") != "eth_getTransactionReceipt" {
			b.Fatal("another suggestion")
		}
	}
}
