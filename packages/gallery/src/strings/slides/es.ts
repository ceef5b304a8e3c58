import type { slides as english } from './en.ts'

/** The texts of slides: what the viewer shows of a file. */
export const slides: typeof english = {
  openPdf: 'Abrir el PDF',
  firstPage: 'La primera página del PDF',
  open: 'Abrir en otra pestaña',
  noPreview: 'No hay vista previa para este tipo de archivo. Descárgalo para abrirlo.',
  noPicture: 'El navegador no puede mostrar esta imagen. Descárgala para verla.',
  damaged: 'Esta imagen está dañada. Sube el original de nuevo.',
  noPlayback: 'El navegador no puede reproducir este archivo. Descárgalo para reproducirlo.',
  noText: 'No se pudo cargar este texto. Inténtalo más tarde o descarga el archivo.',
  encoding: 'Codificación',
  automatic: 'Automática',
  play: 'Reproducir la animación',
  emptyText: 'Este archivo está vacío.',
  textPreview: (shown: string, size: string) =>
    `Los primeros ${shown} de ${size}. Descarga el archivo para leerlo entero.`,
}
