package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// page writes a report as a page and reads what its script reads.
func page(t *testing.T, r *Report, x *Export) (text string, data pageReport) {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r, x, "the last line", false); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(b.String(), `<script type="application/json" id="data">`)
	raw, _, _ := strings.Cut(rest, "</script>")
	if err := json.Unmarshal([]byte(raw), &data); err != nil {
		t.Fatal(err)
	}
	return b.String(), data
}

// TestHTML compares what a page has with the report.
func TestHTML(t *testing.T) {
	r := exported()
	r.Findings[0].Message = "</script><script>alert(1)</script>{{js}}"
	r.Findings[1].Suppressed = &Suppressed{By: "file", At: "s.toml:3", Reason: "ticket"}
	x := testExport()
	x.Command = "fencepost run prog.cu"
	text, data := page(t, r, x)
	if n := strings.Count(text, "</script>"); n != 2 {
		t.Errorf("the page ends %d scripts", n)
	}
	if m := regexp.MustCompile(`(src|href)="|url\(|@import|https?://[^w]`).FindString(strings.Split(text, `<script type="application/json"`)[0]); m != "" {
		t.Errorf("the page refers to other files: %s", m)
	}
	if len(data.Findings) != len(r.Findings) || data.Last != "the last line" || data.Command != x.Command || data.Verdict != Found ||
		len(data.Kernels) != 2 || data.Skipped[0].What != "cudaGraphLaunch" || data.Notes[0] != "A remark." {
		t.Errorf("the page has %+v", data)
	}
	if data.Findings[1].Suppressed != "by file s.toml:3: ticket" {
		t.Errorf("suppressed %q", data.Findings[1].Suppressed)
	}
	for _, f := range data.Findings {
		if data.Help[string(f.Kind)] == "" {
			t.Errorf("there is no page on %s", f.Kind)
		}
		for _, s := range f.Sides {
			if s.File == "" {
				continue
			}
			line := data.Sources[s.File][s.Line]
			if line == "" || s.To > len([]rune(line)) || s.From > s.To {
				t.Errorf("%s marks %d to %d of line %d of %s: %q", f.ID, s.From, s.To, s.Line, s.File, line)
			}
		}
	}
}

// TestHTMLOrder wants the side that came first first in the drawing, although the text shows writes first.
func TestHTMLOrder(t *testing.T) {
	f := race()
	f.Accesses[0].Op, f.Accesses[1].Op = detect.Read, detect.Write
	r := &Report{Findings: []Finding{f}}
	_, data := page(t, r, testExport())
	if p := data.Findings[0]; p.First != 1 || p.Sides[0].Op != "write" {
		t.Errorf("side %d is first, the sides are %s, %s", p.First, p.Sides[0].Op, p.Sides[1].Op)
	}
	r.Findings[0].NoSync = true
	if _, data = page(t, r, testExport()); data.Findings[0].First != -1 {
		t.Error("synchronisation that is not known is drawn")
	}
}

// many is a report of n findings in sources of 100,000 lines.
func many(n int) (*Report, *Export) {
	lines := make([]string, 1000)
	for i := range lines {
		lines[i] = fmt.Sprintf("  data[%d] = data[%d + threadIdx.x] * 2; // line %d", i, i+1, i+1)
	}
	kinds := []detect.Kind{detect.MissingBarrier, detect.MissingFence, detect.SameValue, detect.Unordered}
	r := &Report{Verdict: Found}
	for i := range n {
		f := race()
		f.Kind, f.ID = kinds[i%len(kinds)], fmt.Sprintf("FP-%08x", i)
		if f.Kind == detect.SameValue {
			f.Severity = detect.Warning
		}
		f.Accesses = append([]Access{}, f.Accesses...)
		for j := range f.Accesses {
			f.Accesses[j].Frames = []event.Frame{{File: fmt.Sprintf("src%d.cu", i%100), Line: 1 + (i/100*7+j*3)%1000, Column: 3, Function: fmt.Sprintf("kernel%d", i%977)}}
		}
		r.Findings = append(r.Findings, f)
	}
	x := testExport()
	x.Source = func(string) []string { return lines }
	return r, x
}

// TestHTMLSize bounds a page of 10,000 findings in 100,000 lines.
func TestHTMLSize(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 10,000 findings")
	}
	r, x := many(10000)
	text, _ := page(t, r, x)
	if len(text) > 32<<20 {
		t.Errorf("the page has %d bytes", len(text))
	}
}

// probe runs in the page behind its script, and writes what it finds into the title.
const probe = `<script>
const report = [], want = (what, ok) => report.push((ok ? "ok " : "WRONG ") + what);
const key = (k) => document.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true}));
want("overview", $("detail").textContent.includes("Overview"));
want("all findings", $("shown").textContent === "10000 findings");
want("few rows", document.querySelectorAll(".row").length < 60);
key("j");
want("first finding", current === rows[1].f && location.hash === "#" + current.id);
want("drawings", document.querySelectorAll("#detail svg").length >= 3);
want("both lines", document.querySelectorAll("#detail .m0, #detail .m1").length >= 4);
key("j"); key("k");
want("back", current === rows[1].f);
$("search").value = "kernel17 src17.cu"; $("search").dispatchEvent(new Event("input"));
want("search", rows.filter(r => r.f).length > 0 && rows.filter(r => r.f).every(r => r.f.sides.some(s => s.where.includes("kernel17"))));
key("Escape");
want("cleared", $("shown").textContent === "10000 findings");
$("kind").value = "same-value"; $("kind").dispatchEvent(new Event("change"));
want("kind", $("shown").textContent === "2500 of 10000 findings");
key("Escape");
document.querySelectorAll("#severities input")[1].click();
want("severity", $("shown").textContent === "7500 of 10000 findings");
document.querySelectorAll("#severities input")[1].click();
$("list").scrollTop = 5000 * ROW; draw();
document.querySelectorAll(".row[role=option]")[5].click();
want("scrolled and clicked", rows.findIndex(r => r.f === current) > 4900);
document.querySelector(".row.head, .row").click();
const before = $("theme") && document.documentElement.className; $("theme").click();
want("theme", document.documentElement.className !== before);
const start2 = performance.now();
for (let i = 0; i < 20; i++) { $("search").value = "kernel" + i; filter(); }
const each = (performance.now() - start2) / 20;
want("a search takes " + Math.round(each) + " ms", each < 200);
document.title = "PROBE " + report.join("; ") + " END";
</script></body>`

// TestHTMLInBrowser uses a page of 10,000 findings in Chromium, if there is one.
func TestHTMLInBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil || testing.Short() {
		t.Skip("starts chromium, if it is installed")
	}
	r, x := many(10000)
	text, _ := page(t, r, x)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(strings.Replace(text, "</body>", probe, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	out, err := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-quic", "--user-data-dir="+dir, "--timeout=30000", "--dump-dom", "file://"+file).Output()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`PROBE (.*?) END</title>`).FindSubmatch(out)
	if m == nil {
		t.Fatal("the script of the page failed")
	}
	t.Logf("%d bytes, %v with the start of the browser: %s", len(text), time.Since(begin).Round(time.Millisecond), m[1])
	if strings.Contains(string(m[1]), "WRONG") {
		t.Errorf("%s", m[1])
	}
}
