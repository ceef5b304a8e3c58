import { formatCount } from '../locale.ts'

const files = (count: number) => (count === 1 ? '1 file' : `${formatCount(count)} files`)

/** The texts of uploads and of their list. */
export const uploads = {
  label: 'Uploads',
  sending: (done: number, all: number) => `Uploading: ${formatCount(done)} of ${files(all)}`,
  waitingForServer: 'Waiting for the server',
  paused: (left: number) => `${files(left)} paused`,
  finished: (count: number) => `${files(count)} uploaded`,
  failed: (count: number) => `${files(count)} not uploaded`,
  partly: (done: number, all: number) => `${formatCount(done)} of ${files(all)} uploaded`,
  toChooseAgain: (count: number) => `${files(count)} to choose again`,
  nothing: 'Nothing to upload',
  reading: (count: number) =>
    count === 0 ? 'Reading the folders…' : `Reading the folders: ${files(count)} so far`,
  partOf: (done: string, all: string) => `${done} of ${all}`,
  speed: (size: string) => `${size}/s`,
  timeLeft: (time: string) => `${time} left`,
  fewSeconds: 'a few seconds',
  seconds: (count: number) => `${count} s`,
  minutes: (count: number) => `${count} min`,
  hours: (count: number, minutes: number) => `${count} h ${minutes} min`,
  notDone: (failed: number) => `${formatCount(failed)} not uploaded`,
  continuesLater: 'You can close this page. The uploads continue when you open it again in this browser.',
  keepOpen: 'Keep this page open until the uploads are done.',
  systemFiles: (count: number) =>
    `${count === 1 ? '1 system file' : `${formatCount(count)} system files`} skipped (such as .DS_Store and Thumbs.db)`,
  emptyFolders: (count: number) =>
    `${count === 1 ? '1 empty folder' : `${formatCount(count)} empty folders`} skipped`,
  unreadableFolders: (count: number) =>
    `${count === 1 ? '1 folder' : `${formatCount(count)} folders`} could not be read. Nothing in ${count === 1 ? 'it' : 'them'} was uploaded.`,
  duplicates: (count: number) =>
    count === 1
      ? '1 file is already in the list, with the same name, size and date. It was not added again.'
      : `${files(count)} are already in the list, with the same name, size and date. They were not added again.`,
  addAgain: 'Add again',
  copy: 'Copy links',
  retryFailed: 'Retry failed files',
  showMore: (count: number) => `Show ${formatCount(count)} more`,
  overall: 'All uploads',
  uploadOf: (name: string) => `Upload of ${name}`,
  progress: (sent: string, size: string) => `${sent} of ${size}`,
  waiting: 'Waiting',
  inProgress: 'Uploading',
  pausedAll: 'Paused',
  pausedAt: (sent: string, size: string) => `Paused at ${sent} of ${size}`,
  done: 'Uploaded',
  chooseAgain: 'Choose this file again to continue',
  pause: (name: string) => `Pause ${name}`,
  resume: (name: string) => `Resume ${name}`,
  retry: (name: string) => `Try ${name} again`,
  cancel: (name: string) => `Cancel ${name}`,
  pauseAll: 'Pause all',
  resumeAll: 'Resume all',
  collapse: 'Show less',
  expand: 'Show all uploads',
  close: 'Close the list of uploads',
  cancelAll: 'Cancel all',
  more: (count: number) => `and ${formatCount(count)} more`,
  continued: (count: number) => `Continuing ${files(count)} from your last visit.`,
  unknown:
    'The server refused this file and gave no reason. Try again; if it happens again, see the server’s log.',
  unreadable: 'This file could not be read: it was moved or deleted, or you have no permission to read it.',
  changed: 'This file was changed, moved or deleted after you chose it. Choose it again.',
  tooLarge: 'This file is larger than the server allows.',
  noRoom: (limit: string) => `This file does not fit: the bucket is limited to ${limit}.`,
  tooLargeFor: (limit: string) => `This file is too large: the server allows up to ${limit} per file.`,
}
