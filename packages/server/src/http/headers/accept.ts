/** Whether an Accept header names the media type, with a weight above 0. Ranges such as `text/*` do not name it. */
export const namesType = (accept: string | undefined, type: string): boolean =>
  (accept ?? '').split(',').some((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    return name === type && !parameters.some((parameter) => /^q\s*=\s*0(\.0*)?$/.test(parameter))
  })
