/** The texts of slides: what the viewer shows of a file. */
export const slides = {
  openPdf: 'Open the PDF',
  firstPage: 'The first page of the PDF',
  open: 'Open in a new tab',
  noPreview: 'There is no preview for this type of file. Download it to open it.',
  noPicture: 'The browser cannot display this picture. Download it to view it.',
  damaged: 'This picture is damaged. Upload the original again.',
  noPlayback: 'The browser cannot play this file. Download it to play it.',
  noText: 'This text could not be loaded. Try again later or download the file.',
  encoding: 'Encoding',
  automatic: 'Automatic',
  play: 'Play the animation',
  emptyText: 'This file is empty.',
  textPreview: (shown: string, size: string) =>
    `Showing the first ${shown} of ${size}. Download the file to read all of it.`,
}
