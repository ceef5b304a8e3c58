/** Whether the element takes the arrow keys, Home and End itself. */
export const takesKeys = (target: EventTarget | null): boolean =>
  target instanceof Element && target.matches('input:not([type=checkbox]), textarea, select, audio, video')
