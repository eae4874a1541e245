/* console_panel.h - an extension's panel as a screen full of cells. Pure.
 *
 * A screen is the only thing that is drawn, and a cell holds one printable
 * character with its marks, never a control: whatever a panel says, it can
 * neither move a cursor nor set a title. The first row names the extension and
 * the last one is the console's; what lies between is the extension's. */
#ifndef ZB_CONSOLE_PANEL_H
#define ZB_CONSOLE_PANEL_H

#include "buf.h"

#define ZB_PANEL_LINES	   1000	       /* of a panel; more are not kept */
#define ZB_PANEL_BYTES	   (256 << 10) /* of all its lines */
#define ZB_PANEL_SIDE	   1000	       /* rows and columns of a screen */
#define ZB_CELL_CHARACTERS 4	       /* a base and its marks */

/* Zero-initialise; zb_panel_done(). */
struct zb_panel {
	char *id, *title, *footer; /* never NULL once read */
	struct zb_strv lines;
	bool cut; /* it had more lines than are kept */
};

/* Read a panel out of a frame: member @key of it, or, @key NULL, the frame
 * itself as a panel_render of @out. A render keeps the title when it brings
 * none; lines and footer are replaced. Return: 0, or ZB_EUSAGE if there is no
 * panel (@out is as it was). */
int zb_panel_read(struct zb_panel *out, const char *line, size_t len,
		  const char *key);
void zb_panel_done(struct zb_panel *p);

enum {
	ZB_STYLE_BOLD = 1,
	ZB_STYLE_DIM = 2,
	ZB_STYLE_ITALIC = 4,
	ZB_STYLE_UNDERLINE = 8,
	ZB_STYLE_REVERSE = 16,
	ZB_STYLE_BLINK = 32,
};

struct zb_style {
	int16_t fg, bg; /* of 256 colours; -1: the terminal's own */
	uint8_t flags;
};

struct zb_cell {
	uint32_t cp[ZB_CELL_CHARACTERS];
	uint8_t n;     /* 0: the right half of the one before */
	uint8_t width; /* 1 or 2 */
	struct zb_style style;
};

/* rows * cols cells. Zero-initialise; zb_screen_done(). */
struct zb_screen {
	struct zb_cell *cell;
	unsigned rows, cols;
};

/* Columns of a character: wcwidth(3), in whatever way the caller has it. */
typedef int zb_width(uint32_t cp);

/* Compose @p, of extension @ext, for a screen of @rows and @cols. @status: for
 * the last row, beside how to leave. Long lines go on in the next row; of what
 * does not fit that part is shown where a line begins with one of the marks of
 * selection. Return: 0, or ZB_ELIMIT when out of memory. */
int zb_panel_draw(const struct zb_panel *p, const char *ext, const char *status,
		  unsigned rows, unsigned cols, zb_width *width,
		  struct zb_screen *out);
void zb_screen_done(struct zb_screen *s);

#endif
