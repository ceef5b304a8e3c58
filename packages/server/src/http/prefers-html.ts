/** Whether whoever asks takes HTML by name, as browsers do (RFC 9110, section 12.5.1). */
export const prefersHtml = (accept: string | undefined): boolean =>
  (accept ?? '')
    .split(',')
    .some((range) => /^\s*text\/html\s*(;|$)/i.test(range) && !/;\s*q\s*=\s*0(\.0*)?\s*(;|$)/i.test(range))
