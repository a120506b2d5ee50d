package standin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// definedSymbols lists the symbols that an object file exports.
func definedSymbols(object []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	all, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range all {
		if elf.ST_BIND(s.Info) == elf.STB_GLOBAL && s.Section != elf.SHN_UNDEF && elf.ST_VISIBILITY(s.Other) == elf.STV_DEFAULT {
			names = append(names, s.Name)
		}
	}
	return names, nil
}

// arArchive writes a static library in the System V format with its symbol index, so that no ar program is needed.
func arArchive(member string, object []byte, symbols []string) []byte {
	const magic = "!<arch>\n"
	var index bytes.Buffer
	write := func(v uint32) { index.Write(binary.BigEndian.AppendUint32(nil, v)) }
	var names bytes.Buffer
	for _, s := range symbols {
		names.WriteString(s + "\x00")
	}
	size := 4 + 4*len(symbols) + names.Len()
	at := len(magic) + 60 + size + size%2
	write(uint32(len(symbols)))
	for range symbols {
		write(uint32(at))
	}
	index.Write(names.Bytes())

	var out bytes.Buffer
	out.WriteString(magic)
	entry := func(name string, data []byte) {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, 0, 0, 0, "100644", len(data))
		out.Write(data)
		if len(data)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	entry("/", index.Bytes())
	entry(member+"/", object)
	return out.Bytes()
}
