package hirace

// published is the table by the paper's authors, with a letter for each state. Rows are the old states in order. A row
// is ordered by action, then by kind of barrier, then by relation.
var published = [numStates]string{
	"bbbbbbbbbbbb cccccccccccc ssssssssssss vvvvvvvvvvvv", // INIT
	"bdefbbefbbbf cyyyccyycccy cyyyccyycccy cyyyccyycccy", // READ
	"cyyyggyyhhhy cyyyccyycccy cyyynnyyrrry cyyynnyyrrry", // WRITE
	"ddefbbefbbbf yyyyccyycccy yyyynnyyrrry yyyynnyyrrry", // WREAD
	"eeefeeefbbbf yyyyyyyycccy yyyyyyyyrrry yyyyyyyyrrry", // BREAD
	"ffffffffffff yyyyyyyyyyyy yyyyyyyyyyyy yyyyyyyyyyyy", // GREAD
	"giyyggyyhhhy cyyyccyycccy cyyynnyyrrry cyyynnyyrrry", // WSYNC
	"hlkyjjkyhhhy cyyyccyycccy cyyynnyyrrry cyyynnyyrrry", // BSYNC
	"iiyyggyyhhhy yyyyccyycccy yyyynnyyrrry yyyynnyyrrry", // MR_WSYNC
	"jlkyjjkyhhhy cyyyccyycccy cyyynnyyrrry cyyynnyyrrry", // BWSYNC
	"kkkykkkyhhhy yyyyyyyycccy yyyyyyyyrrry yyyyyyyyrrry", // B_MR_BSYNC
	"llkyjjkyhhhy yyyyccyycccy yyyynnyyrrry yyyynnyyrrry", // W_MR_BWSYNC
	"yyyyyyyyhhhy yyyyyyyycccy mmmymmmymmsy mmmymmmymmsy", // BATOM_B
	"cyyyggyyhhhy cyyyccyycccy npyynnyyrrry nnyynnyyrrry", // WSYNC_ATOM
	"yyyyggyyhhhy yyyyccyycccy oomyssmysssy oomyssmysssy", // BATOM_W
	"yyyyggyyhhhy yyyyccyycccy ppyynnyyrrry ppyynnyyrrry", // WSYNC_ATOM_M
	"yyyyyyyyyyyy yyyyyyyyyyyy yyyyyyyyyyyy qqqqqqqqqqqq", // GATOM_G
	"cyyyggyyhhhy cyyyccyycccy rxuyrruyrrry rxuyrruyrrry", // BSYNC_ATOM
	"cyyyggyyhhhy cyyyccyycccy somyssmysssy somyssmysssy", // BATOM
	"yyyyyyyyhhhy yyyyyyyycccy mmmymmmysssy tttqtttqvvvq", // GATOM_B
	"yyyyyyyyhhhy yyyyyyyycccy uuuyuuuyrrry uuuyuuuyrrry", // BSYNC_ATOM_B
	"cyyyggyyhhhy cyyyccyycccy somyssmysssy vwtqvvtqvvvq", // GATOM
	"yyyyggyyhhhy yyyyccyycccy oomyssmysssy wwtqvvtqvvvq", // GATOM_W
	"yyyyggyyhhhy yyyyccyycccy xxuyrruyrrry xxuyrruyrrry", // BSYNC_ATOM_W
	"yyyyyyyyyyyy yyyyyyyyyyyy yyyyyyyyyyyy yyyyyyyyyyyy", // RACE
}
