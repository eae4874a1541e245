/* stage_image.c - zotbox-stage, built beside, inside this program: there is no
 * file to find, to mismatch or to replace. */
#include "config.h"

#include "platform/linux/launch.h"

__asm__(".section .rodata\n"
	".balign 16\n"
	".globl zb_stage_image\n"
	"zb_stage_image:\n"
	".incbin \"" ZB_STAGE_FILE "\"\n"
	".globl zb_stage_image_end\n"
	"zb_stage_image_end:\n"
	".byte 0\n"
	".previous\n");
