package file

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"ashlar/internal/vectors"
)

func BenchmarkExport(b *testing.B) {
	benchmark(b, encodeExport(b, makeBlocks(b, 0, 2000)))
}

func BenchmarkExportGzip(b *testing.B) {
	benchmark(b, zip(b, encodeExport(b, makeBlocks(b, 0, 2000))))
}

func BenchmarkExportSync3000(b *testing.B) {
	benchmarkPath(b, vectors.Path(b, "chains", "sync-3000", "chain.rlp"))
}

func BenchmarkEra1Mainnet(b *testing.B) {
	benchmarkPath(b, vectors.Path(b, "era1", "mainnet-00000-5ec1ffb8.era1"))
}

func BenchmarkEra1SepoliaOpen(b *testing.B) {
	path := vectors.Path(b, "era1", "sepolia-00000-643a00f7.era1")
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

func benchmark(b *testing.B, data []byte) {
	path := filepath.Join(b.TempDir(), "blocks")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	benchmarkPath(b, path)
}

func benchmarkPath(b *testing.B, path string) {
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = f.Next()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
		f.Close()
	}
}
