import { strings } from '../../strings.ts'
import type { SendContext } from './send-context.ts'
import type { UploadEntry } from './upload-list.ts'

/** Sends one file as a resumable upload, until it is stored, refused, paused or cancelled. */
export async function sendLargeFile(context: SendContext, entry: UploadEntry): Promise<void> {
  const { list, outcomes, options } = context
  const loaded = await options.loadResumable().catch(() => null)
  if (loaded === null) return outcomes.failed(entry, strings.uploads.notLoaded)
  const { sendResumable, NoResponse } = loaded
  for (let tries = 1; await context.untilResumed(); tries += 1) {
    // It may have been paused or cancelled while waiting.
    if (list.get(entry.id)?.state !== 'sending') return
    const file = await context.reader.readableFile(entry)
    if (file === null) return
    const sentBefore = entry.sent
    const upload = sendResumable({
      file,
      name: entry.name,
      contentType: entry.contentType,
      endpoint: options.endpoint,
      token: options.token,
      uploadUrl: entry.uploadUrl,
      onUrl(url) {
        if (entry.uploadUrl === url) return
        entry.uploadUrl = url
        options.onSending([entry])
      },
      onProgress(sent) {
        request.progressAt = Date.now()
        if (list.get(entry.id)) list.update(entry, { sent })
        options.onChange()
      },
    })
    let stop = () => {}
    const stopped = new Promise<null>((resolve) => {
      stop = () => {
        upload.stop()
        resolve(null)
      }
    })
    const request = { entries: [entry], stop, cancel: stop, progressAt: Date.now() }
    context.begin(request)
    try {
      const id = await Promise.race([upload.finished, stopped])
      if (id !== null) return outcomes.stored([entry], [{ id }])
    } catch (error) {
      // A request also ends without response when the file changes on the disk.
      if (error instanceof NoResponse && (await context.reader.readableFile(entry)) === null) return
      if (entry.sent > sentBefore) tries = 1
      const refused = await outcomes.waitForRetry(error instanceof NoResponse ? null : error, tries)
      if (refused !== null) return outcomes.refused(entry, refused)
    }
  }
}
