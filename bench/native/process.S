/* SPDX-License-Identifier: GPL-2.0 */
/* What the module calls of the kernel with registers of its own; see process.c. */

	.text

/* Interrupts are on. */
	.globl native_flags
native_flags:
	movl $0x200, %eax
	ret

/* Copies from and to the user's memory, to %rdi from %rsi; zeroes. */
	.globl rep_movs_alternative, rep_stos_alternative
rep_movs_alternative:
	rep movsb
	ret
rep_stos_alternative:
	rep stosb
	ret

/* The value is in %rdx, the pointer in %rax, which the error replaces. */
	.globl __get_user_1, __get_user_4, __get_user_8
__get_user_1:
	movzbl (%rax), %edx
	xorl %eax, %eax
	ret
__get_user_4:
	movl (%rax), %edx
	xorl %eax, %eax
	ret
__get_user_8:
	movq (%rax), %rdx
	xorl %eax, %eax
	ret

/* The value is in %rax, the pointer in %rcx, which the error replaces. */
	.globl __put_user_1, __put_user_4, __put_user_8
__put_user_1:
	movb %al, (%rcx)
	xorl %ecx, %ecx
	ret
__put_user_4:
	movl %eax, (%rcx)
	xorl %ecx, %ecx
	ret
__put_user_8:
	movq %rax, (%rcx)
	xorl %ecx, %ecx
	ret

	.section .note.GNU-stack, "", @progbits
