import { formatCount } from '../locale.ts'

const files = (count: number) => (count === 1 ? '1 file' : `${formatCount(count)} files`)

/** The texts of upload links: of their page, and of the dialogs that create them. */
export const links = {
  // The page.
  defaultTitle: 'Send files',
  checking: 'Opening the link…',
  choosePhotos: 'Choose photos',
  choosePhotosAndVideos: 'Choose photos and videos',
  chooseFiles: 'Choose files',
  takePhoto: 'Take a photo',
  orDrop: 'or drop them here',
  drop: 'Drop the files to send them',
  limits: 'What you can send',
  chosen: 'Chosen files',
  chosenCount: (count: number, size: string) => `${files(count)} chosen, ${size}`,
  send: (count: number) => `Send ${files(count)}`,
  progress: 'Your files',
  thanks: (count: number) =>
    count === 1 ? 'Thank you! Your file arrived.' : `Thank you! All ${formatCount(count)} files arrived.`,
  arrived: (count: number) => `${files(count)} arrived`,
  more: 'You can close this page, or send more.',
  canClose: 'You can close this page.',
  continuesLater:
    'You can close this page. The uploads continue when you open the link again in this browser.',
  complete: 'This link has received all its files',
  completeHint: 'To send more, ask the person who gave you the link.',
  invalid: 'This link does not work',
  invalidHint:
    'It has expired, was revoked, or is incomplete. Ask the person who gave it to you for a new one.',
  unreachable: 'The service cannot be reached',
  unreachableHint: 'Check your connection. The page tries again by itself.',
  remove: (name: string) => `Remove: ${name}`,
  retry: (name: string) => `Try again: ${name}`,
  // Limits in words.
  upTo: (count: number) => `Up to ${files(count)}`,
  left: (count: number, of: number) => `${formatCount(count)} of ${files(of)} left`,
  total: (size: string) => `${size} in total`,
  leftOfTotal: (size: string, of: string) => `${size} of ${of} left`,
  each: (size: string) => `At most ${size} for each file`,
  onlyKinds: (kinds: string) => `Only ${kinds}`,
  kinds: {
    image: 'pictures',
    video: 'videos',
    audio: 'audio',
    text: 'texts',
    application: 'documents',
  } as Readonly<Record<string, string>>,
  until: (time: string) => `The link works until ${time}`,
  expireAfter: (days: number) =>
    `The files are deleted after ${days === 1 ? '1 day' : `${formatCount(days)} days`}`,
  noneLeft: 'This link accepts no more files.',
  tooMuch: 'This is more than the link still accepts.',
  tooLarge: (limit: string) => `This file is too large: the link allows up to ${limit} per file.`,
  wrongType: (kinds: string) => `This link accepts only ${kinds}.`,
  // The dialogs of the gallery.
  askAbout: 'People who open the link send files to this bucket. They see nothing of it and need no account.',
  moreFields: 'More',
  title: 'Title',
  note: 'Note',
  noteHint: 'Shown on the page, for example what the files are for',
  howMany: 'How many files',
  anyNumber: 'Any number',
  which: 'Which files',
  any: 'Any files',
  pictures: 'Pictures',
  picturesAndVideos: 'Pictures and videos',
  documents: 'PDF documents',
  maxSize: 'Largest file',
  maxTotal: 'All files together',
  noLimit: 'No limit',
  deleteAfter: 'Days until the files are deleted',
  never: 'Never',
  labels: 'Labels of the files',
  validFor: 'The link works for',
  create: 'Create the link',
  created: 'The link',
  createdAbout:
    'Send it to the people who will upload files, or let them scan the code. It is shown only once.',
  copy: 'Copy the link',
  code: 'QR code of the link',
  badge: 'Uploads only',
  received: (count: number, size: string) =>
    count === 0 ? 'Nothing arrived yet' : `${files(count)} arrived, ${size}`,
}
