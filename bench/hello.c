/* hello.c - the smallest program: one line, linked statically. */
#include "config.h"

#include <unistd.h>

int main(void)
{
	return write(1, "x\n", 2) != 2;
}
