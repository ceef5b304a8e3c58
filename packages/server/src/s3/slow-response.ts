import type { S3Context, S3Reply } from './s3-context.ts'
import { errorElement, errorOf } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'
import { type XmlContent, xmlDocument, xmlHead, xmlOf } from './xml.ts'

/** Milliseconds after which a response begins, and between two signs of life. Proxies close silent connections after 30 or 60 seconds. */
const longestSilence = 8_000

/**
 * The document that results from work on the bytes of an object, which can take minutes. Then the response begins before its result is known, and has white
 * space until its document, which can be that of an error (docs/interface.md SP9).
 */
export async function slowReply(
  { http: { settings }, reportFault }: Pick<S3Context, 'http' | 'reportFault'>,
  request: S3Request,
  root: string,
  work: Promise<XmlContent>,
): Promise<S3Reply | null> {
  const silence = Math.min(longestSilence, Math.ceil(settings.idleTimeout / 4))
  if (!(await takesLonger(work, silence))) return { status: 200, xml: [root, await work] }
  const { response } = request
  response.writeHead(200, { 'content-type': 'application/xml' })
  response.write(xmlHead)
  const timer = setInterval(() => response.write(' '), silence)
  try {
    response.end(xmlDocument(root, await work).slice(xmlHead.length))
  } catch (error) {
    const sent = errorOf(error, (unknown) => reportFault(unknown, request))
    response.end(xmlOf(errorElement(sent, request.target.path, request.id)))
  } finally {
    clearInterval(timer)
  }
  return null
}

/** Whether the work is still in progress after these milliseconds. */
async function takesLonger(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(true), milliseconds)
  const isDone = () => resolve(false)
  work.then(isDone, isDone)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}
