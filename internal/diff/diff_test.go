package diff

import "testing"

func TestUnified(t *testing.T) {
	before := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\na\nb\nc\nd"
	after := "1\n2\n3\n4\nx\n6\n7\n8\n9\n10\na\nb\ny\nc\nd"
	want := `--- f
+++ f
@@ -2,7 +2,7 @@
 2
 3
 4
-5
+x
 6
 7
 8
@@ -10,5 +10,6 @@
 10
 a
 b
+y
 c
 d
\ No newline at end of file
`
	if got := Unified("f", before, after); got != want {
		t.Errorf("got\n%s", got)
	}
	if Unified("f", before, before) != "" {
		t.Error("equal texts differ")
	}
}
